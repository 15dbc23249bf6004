#include "src/nccl/xml/elements.hpp"

#include <algorithm>
#include <charconv>
#include <map>

namespace gdr::nccl {
namespace {

/// The tag of the parent of an element with this tag; empty: the owner of the list.
std::string_view usual_parent(std::string_view tag) {
  if (is_gpu_link(tag)) return "gpu";
  if (tag == "net") return "nic";
  return {};
}

struct Place {
  std::string path;    ///< "" for the owner, then "/gpu", "/gpu/nvlink"
  std::string tag;     ///< tag of the parent
  bool plain = true;   ///< the tag alone identifies the parent
  bool owner = false;  ///< the parent is the owner of the list
};

void keep_below(const xml::Element& parent, const Place& place, std::vector<NcclElement>& kept) {
  for (const xml::Element& child : parent.children) {
    const std::string_view wanted = usual_parent(child.tag);
    const bool plain = place.plain && (wanted.empty() ? place.owner : place.tag == wanted);
    const std::string path = place.path + "/" + child.tag;
    kept.push_back({plain ? child.tag : path, child.attributes});
    keep_below(child, {path, child.tag, plain, false}, kept);
  }
}

}  // namespace

bool is_gpu_link(std::string_view tag) { return tag == "nvlink" || tag == "xgmi" || tag == "c2c"; }

std::vector<NcclElement> keep(const xml::Element& element,
                              const std::function<bool(const xml::Element&)>& is_device) {
  std::vector<NcclElement> kept{{element.tag, element.attributes}};
  std::size_t devices = 0;
  for (const xml::Element& child : element.children) {
    if (is_device(child)) {
      ++devices;
      continue;
    }
    for (; devices > 0; --devices) kept.push_back({std::string(place_of_child), {}});
    const xml::Element alone{element.tag, {}, {child}};
    keep_below(alone, {"", element.tag, true, true}, kept);
  }
  return kept;
}

xml::Element restore(const std::vector<NcclElement>& elements, std::vector<xml::Element> devices) {
  xml::Element root{elements.front().tag, elements.front().attributes, {}};
  auto next_device = devices.begin();
  // Depth of the last element of each tag that can have children; the owner is at 0.
  std::map<std::string_view, std::size_t> depth_of{{elements.front().tag, 0}};
  for (auto element = elements.begin() + 1; element != elements.end(); ++element) {
    if (element->tag == place_of_child) {
      if (next_device != devices.end()) root.children.push_back(std::move(*next_device++));
      continue;
    }
    std::string tag = element->tag;
    std::size_t depth = 1;
    if (tag.starts_with('/')) {
      depth = static_cast<std::size_t>(std::count(tag.begin(), tag.end(), '/'));
      tag = tag.substr(tag.rfind('/') + 1);
    } else if (const auto parent = depth_of.find(usual_parent(tag)); parent != depth_of.end()) {
      depth = parent->second + 1;
    }
    xml::Element* parent = &root;
    for (std::size_t level = 1; level < depth && !parent->children.empty(); ++level)
      parent = &parent->children.back();
    parent->children.push_back({tag, element->attributes, {}});
    if (!element->tag.starts_with('/')) depth_of[element->tag] = depth;
  }
  std::move(next_device, devices.end(), std::back_inserter(root.children));
  return root;
}

const std::string* attribute(const NcclElement& element, std::string_view name) {
  for (const auto& [key, value] : element.attributes)
    if (key == name) return &value;
  return nullptr;
}

void set_attribute(NcclElement& element, std::string_view name, std::string value) {
  for (auto& [key, old] : element.attributes) {
    if (key != name) continue;
    old = std::move(value);
    return;
  }
  element.attributes.emplace_back(name, std::move(value));
}

const NcclElement* find(const std::vector<NcclElement>& elements, std::string_view tag) {
  const auto found = std::find_if(elements.begin(), elements.end(),
                                  [&](const NcclElement& e) { return e.tag == tag; });
  return found != elements.end() ? &*found : nullptr;
}

std::optional<std::int64_t> integer_attribute(const NcclElement& element, std::string_view name) {
  const std::string* text = attribute(element, name);
  if (text == nullptr) return std::nullopt;
  const bool hex = text->starts_with("0x") || text->starts_with("0X");
  const char* begin = text->data() + (hex ? 2 : 0);
  const char* end = text->data() + text->size();
  std::int64_t value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 10);
  if (error != std::errc{} || stop != end) return std::nullopt;
  return value;
}

}  // namespace gdr::nccl
