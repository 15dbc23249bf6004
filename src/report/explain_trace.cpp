#include "src/report/explain_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "src/common/json.hpp"
#include "src/report/names.hpp"
#include "src/report/output.hpp"

namespace gdr::report {
namespace {

/// Names of tracks get numbers in order of first use.
class Tracks {
 public:
  explicit Tracks(int process) : process_(process) {}
  int number(const std::string& name, json::Array& events) {
    const auto [at, added] = numbers_.emplace(name, static_cast<int>(numbers_.size()) + 1);
    if (added)
      events.emplace_back(json::Object{{"ph", "M"},
                                       {"name", "thread_name"},
                                       {"pid", process_},
                                       {"tid", at->second},
                                       {"args", json::Object{{"name", name}}}});
    return at->second;
  }

 private:
  int process_;
  std::map<std::string, int> numbers_;
};

double end_us(const std::vector<TracedPath>& paths) {
  double end = 0;
  for (const TracedPath& path : paths) end = std::max(end, path.timeline.end.us());
  return end;
}

}  // namespace

std::string to_trace(const Hardware& hardware, const std::vector<TracedPath>& paths) {
  json::Array events;
  int process = 0;
  for (const TracedPath& path : paths) {
    ++process;
    events.emplace_back(json::Object{{"ph", "M"},
                                     {"name", "process_name"},
                                     {"pid", process},
                                     {"args", json::Object{{"name", path.name}}}});
    Tracks tracks(process);
    for (const sim::Span& span : path.timeline.spans) {
      const sim::Timeline::Step& step = path.timeline.steps[span.stage];
      const std::string step_name = report::name(hardware, step.id);
      std::vector<std::string> names;
      for (const sim::ResourceId& resource : step.resources)
        names.push_back(report::name(hardware, resource) + ": " + step_name);
      if (names.empty()) names.push_back(step_name);
      names.erase(std::unique(names.begin(), names.end()), names.end());
      for (const std::string& name : names) {
        // One track per resource and step: users of a resource overlap in time, and events of a
        // track must not.
        events.emplace_back(json::Object{{"ph", "X"},
                                         {"name", step_name},
                                         {"pid", process},
                                         {"tid", tracks.number(name, events)},
                                         {"ts", span.begin.us()},
                                         {"dur", span.end.us() - span.begin.us()},
                                         {"args", json::Object{{"bytes", span.bytes.count}}}});
      }
    }
  }
  return json::dump(json::Object{{"displayTimeUnit", "ns"}, {"traceEvents", std::move(events)}});
}

std::string time_line_text(const Hardware& hardware, const std::vector<TracedPath>& paths,
                           std::size_t width) {
  constexpr std::size_t name_width = 34;
  const std::size_t columns = width - name_width - 3;
  const double end = end_us(paths);
  if (end <= 0) return {};
  std::string text = fmt::format(
      "\nTime line, 0 to {} us (# works on a piece, . waits for one;\na piece is at the next step "
      "some time after it was sent)\n",
      short_number(end));
  for (const TracedPath& path : paths) {
    text += path.name + "\n";
    for (std::size_t s = 0; s < path.timeline.steps.size(); ++s) {
      std::string bar(columns, ' ');
      std::size_t first = columns;
      std::size_t last = 0;
      for (const sim::Span& span : path.timeline.spans) {
        if (span.stage != s) continue;
        const auto column = [&](double us) {
          return std::min(columns - 1,
                          static_cast<std::size_t>(us / end * static_cast<double>(columns)));
        };
        for (std::size_t c = column(span.begin.us()); c <= column(span.end.us()); ++c) bar[c] = '#';
        first = std::min(first, column(span.begin.us()));
        last = std::max(last, column(span.end.us()));
      }
      for (std::size_t c = first; c <= last && c < columns; ++c)
        if (bar[c] == ' ') bar[c] = '.';
      text +=
          fmt::format("  {:<{}}|{}|\n",
                      report::name(hardware, path.timeline.steps[s].id).substr(0, name_width - 1),
                      name_width - 1, bar);
    }
  }
  return text;
}

}  // namespace gdr::report
