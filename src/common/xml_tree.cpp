#include "src/common/xml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <pugixml.hpp>
#include <set>

#include "src/common/error.hpp"

namespace gdr::xml {
namespace {

// Far above what any machine needs; they bound the stack and memory that a hostile file can take.
constexpr int max_depth = 64;
constexpr std::size_t max_elements = 100'000;
constexpr std::size_t max_tag_length = 64;

/// Tags and values end up in JSON, device names and error messages.
bool printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c <= '~'; });
}

Element convert(const pugi::xml_node& node, const std::string& name, int depth,
                std::size_t& count) {
  if (depth > max_depth)
    throw InputError(fmt::format("{}: elements are nested deeper than {}", name, max_depth));
  if (++count > max_elements)
    throw InputError(fmt::format("{}: more than {} elements", name, max_elements));
  Element element;
  element.tag = node.name();
  if (!printable(element.tag) || element.tag.size() > max_tag_length)
    throw InputError(
        fmt::format("{}: the name of an element is not printable ASCII of up to {} characters",
                    name, max_tag_length));
  std::set<std::string_view> seen;
  for (const pugi::xml_attribute& attribute : node.attributes()) {
    if (!printable(attribute.name()) || !printable(attribute.value()))
      throw InputError(
          fmt::format("{}: an attribute of <{}> is not printable ASCII", name, element.tag));
    if (!seen.insert(attribute.name()).second)
      throw InputError(
          fmt::format("{}: <{}> has the attribute {} twice", name, element.tag, attribute.name()));
    element.attributes.emplace_back(attribute.name(), attribute.value());
  }
  for (const pugi::xml_node& child : node.children())
    if (child.type() == pugi::node_element)
      element.children.push_back(convert(child, name, depth + 1, count));
  return element;
}

void append_escaped(std::string& text, std::string_view value) {
  for (const char c : value) {
    switch (c) {
      case '&':
        text += "&amp;";
        break;
      case '<':
        text += "&lt;";
        break;
      case '>':
        text += "&gt;";
        break;
      case '"':
        text += "&quot;";
        break;
      default:
        text += c;
    }
  }
}

void append(std::string& text, const Element& element, std::size_t indent) {
  text.append(indent, ' ').append("<").append(element.tag);
  for (const auto& [name, value] : element.attributes) {
    text.append(" ").append(name).append("=\"");
    append_escaped(text, value);
    text += '"';
  }
  if (element.children.empty()) {
    text += "/>\n";
    return;
  }
  text += ">\n";
  for (const Element& child : element.children) append(text, child, indent + 2);
  text.append(indent, ' ').append("</").append(element.tag).append(">\n");
}

}  // namespace

const std::string* Element::attribute(std::string_view name) const {
  for (const auto& [key, value] : attributes)
    if (key == name) return &value;
  return nullptr;
}

Element parse(std::string_view text, const std::string& name) {
  pugi::xml_document document;
  const pugi::xml_parse_result result =
      document.load_buffer(text.data(), text.size(), pugi::parse_default, pugi::encoding_utf8);
  if (!result) {
    const auto end =
        text.begin() + std::min<std::ptrdiff_t>(std::max<std::ptrdiff_t>(result.offset, 0),
                                                static_cast<std::ptrdiff_t>(text.size()));
    throw InputError(fmt::format("{}:{}: not an XML file: {}", name,
                                 1 + std::count(text.begin(), end, '\n'), result.description()));
  }
  pugi::xml_node root;
  for (const pugi::xml_node& child : document.children()) {
    if (child.type() != pugi::node_element) continue;
    if (root)
      throw InputError(fmt::format("{}: two root elements, <{}> and <{}>; an XML file has one",
                                   name, root.name(), child.name()));
    root = child;
  }
  if (!root) throw InputError(fmt::format("{}: not an XML file: it has no element", name));
  std::size_t count = 0;
  return convert(root, name, 1, count);
}

std::string write(const Element& root) {
  std::string text;
  append(text, root, 0);
  return text;
}

}  // namespace gdr::xml
