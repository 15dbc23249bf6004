#include "src/report/html.hpp"

#include <fmt/format.h>

namespace gdr::report {

std::string html_escaped(std::string_view text) {
  std::string escaped;
  for (const char c : text) switch (c) {
      case '&':
        escaped += "&amp;";
        break;
      case '<':
        escaped += "&lt;";
        break;
      case '>':
        escaped += "&gt;";
        break;
      case '"':
        escaped += "&quot;";
        break;
      default:
        escaped += c;
    }
  return escaped;
}

std::string html_page(std::string_view title, std::string_view body) {
  constexpr std::string_view style =
      "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1000px;padding:0 "
      "1em;color:#1c2733;background:#fff}"
      "h1{font-size:1.5em}h2{font-size:1.2em;margin-top:2em}h3{font-size:1em}"
      "table{border-collapse:collapse;font-size:13px;font-variant-numeric:tabular-nums}"
      "td,th{padding:2px 10px;text-align:right;border-bottom:1px solid "
      "#e3e8ee}td:first-child,th:first-child,.left{text-align:left}"
      ".far{color:#b3261e;font-weight:600}svg{max-width:100%;height:auto}svg text{font:11px "
      "system-ui,sans-serif;fill:#1c2733}.axis{fill:#5b6b7b}"
      ".grid{stroke:#e3e8ee}.one{stroke:#5b6b7b}.range{stroke:#8fb4dd;stroke-width:2}.dot{fill:#"
      "1f5fa8}";
  return fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title><meta "
      "name=\"viewport\" content=\"width=device-width\">\n"
      "<style>{1}</style></head>\n<body>\n<h1>{0}</h1>\n{2}</body></html>\n",
      html_escaped(title), style, body);
}

}  // namespace gdr::report
