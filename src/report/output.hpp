#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "sim/predict.hpp"
#include "src/common/json.hpp"

namespace gdr::report {

struct TableStyle {
  bool numbers = true;     ///< columns after the first are right-aligned
  std::size_t indent = 0;  ///< spaces before each line
  std::size_t width = 0;   ///< the columns that do not fit follow below, after the first column
                           ///< again; 0: no limit
};

/// Columns of text, two spaces apart.
std::string table(const std::vector<std::vector<std::string>>& rows, const TableStyle& style = {});

/// Splits "a,b,c"; whoever parses the parts refuses empty ones.
std::vector<std::string> split(std::string_view text, char separator = ',');

/// Breaks text at spaces so that no line is longer than `width`; lines after the first begin with
/// `indent` spaces.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t width = 80);

/// Text in lines of at most 80 characters that all begin with `indent` spaces and end with a line
/// break.
std::string paragraph(std::string_view text, std::size_t indent);

/// A field of a CSV line.
std::string csv_quoted(std::string_view text);

/// Four significant digits at most: "24.82", "0.0042", "1234".
std::string short_number(double value);

/// A number rounded to six significant digits, as JSON output carries them.
json::Value rounded(double value);

/// [{"mover","from","to","bytes"}...]
json::Value stages_to_json(const Graph& graph, const std::vector<Stage>& stages);

/// Lines that say what the file leaves open about the routes of the stages, and which route was
/// taken; empty if nothing is open.
std::string open_to_text(const Graph& graph, const std::vector<Stage>& stages);

/// One element of "results" in the JSON of `gdr predict`.
json::Value prediction_to_json(const Hardware& hardware, const sim::Prediction& prediction);

}  // namespace gdr::report
