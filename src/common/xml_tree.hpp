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

/// The root element of a document. `name` stands for the source in errors. Throws InputError:
/// syntax (with line), no or several roots, nesting deeper than 64, an attribute given twice,
/// attribute values that are not printable ASCII.
Element parse(std::string_view text, const std::string& name);

/// The document as text, two spaces of indentation a level.
std::string write(const Element& root);

}  // namespace gdr::xml
