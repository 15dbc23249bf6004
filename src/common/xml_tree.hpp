#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace gdr::xml {

/// An element of an XML file as plain data; text and comments are left out. The only XML type
/// outside xml_tree.cpp.
struct Element {
  std::string tag;
  std::vector<std::pair<std::string, std::string>> attributes;
  std::vector<Element> children;
  bool operator==(const Element&) const = default;

  /// The value of an attribute, or nullptr.
  [[nodiscard]] const std::string* attribute(std::string_view name) const;
};

/// Parses a document and returns its root element. `name` stands for the source in errors. Throws
/// InputError on a syntax error (with line), no root or several, nesting deeper than 64, a
/// duplicate attribute, or an attribute that is not printable ASCII.
Element parse(std::string_view text, const std::string& name);

/// The document as text, indented by two spaces per level.
std::string write(const Element& root);

}  // namespace gdr::xml
