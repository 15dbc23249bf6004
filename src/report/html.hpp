#pragma once

#include <string>
#include <string_view>

namespace gdr::report {

/// Text for an HTML page or an attribute in double quotes.
std::string html_escaped(std::string_view text);

/// A self-contained page: title, style for tables and charts, body.
std::string html_page(std::string_view title, std::string_view body);

}  // namespace gdr::report
