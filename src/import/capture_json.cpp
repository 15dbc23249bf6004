#include "src/import/capture_json.hpp"

#include <algorithm>

#include "src/common/base64.hpp"
#include "src/common/json_reader.hpp"
#include "src/common/terminal_text.hpp"
#include "src/import/host_facts.hpp"
#include "src/import/lspci.hpp"
#include "src/import/rdma_topo.hpp"
#include "src/import/sysfs.hpp"
#include "src/import/topo_matrix.hpp"

namespace gdr::observed {
namespace {

bool is_plain(const std::string& text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return (c >= ' ' && c <= '~') || c == '\n' || c == '\t'; });
}

std::map<std::string, std::string> read_texts(const json::Node& node) {
  std::map<std::string, std::string> texts;
  json::ObjectReader object(node);
  for (const auto& [name, value] : object.all()) texts[name] = value.string();
  return texts;
}

json::Object texts_to_json(const std::map<std::string, std::string>& texts) {
  json::Object object;
  for (const auto& [name, text] : texts) object.emplace_back(name, text);
  return object;
}

}  // namespace

Machine Capture::machine() const {
  Machine machine = read_sysfs(files);
  TopoMatrixReader matrix;
  HostFactsReader facts;
  for (const auto& [command, output] : commands)
    for (const std::string_view raw : text::lines(output)) {
      const std::string line = text::without_escapes(raw);
      if (!matrix.line(line)) (void)facts.line(line);
    }
  merge(machine, matrix.take());
  merge(machine, facts.take());
  machine.formats = {"a capture"};
  return machine;
}

Capture read_capture(const json::Value& document, const std::string& name) {
  json::ObjectReader object(json::Node(document, name));
  object.expect_format();
  json::ObjectReader captured(object.required("captured"));
  object.finish();
  Capture capture;
  if (const auto n = captured.optional("root")) capture.root = n->boolean();
  if (const auto n = captured.optional("files")) {
    json::ObjectReader files(*n);
    for (const auto& [path, value] : files.all()) capture.files.add_file(path, value.string());
  }
  if (const auto n = captured.optional("binary")) {
    json::ObjectReader files(*n);
    for (const auto& [path, value] : files.all()) {
      const auto bytes = decode_base64(value.string(), name + ": at " + value.path());
      capture.files.add_file(path, std::string(bytes.begin(), bytes.end()));
    }
  }
  if (const auto n = captured.optional("links"))
    for (const auto& [path, target] : read_texts(*n)) capture.files.add_link(path, "/" + target);
  if (const auto n = captured.optional("commands")) capture.commands = read_texts(*n);
  if (const auto n = captured.optional("missing")) capture.missing = read_texts(*n);
  captured.finish();
  return capture;
}

json::Value to_json(const Capture& capture) {
  json::Object files;
  json::Object binary;
  for (const auto& [path, content] : capture.files.files()) {
    if (is_plain(content)) files.emplace_back(path, content);
    else binary.emplace_back(path, encode_base64(content));
  }
  json::Object links;
  for (const auto& [path, target] : capture.files.links()) links.emplace_back(path, target);
  json::Value captured = json::Object{};
  captured.set("root", capture.root);
  captured.set("commands", texts_to_json(capture.commands));
  captured.set("missing", texts_to_json(capture.missing));
  captured.set("links", std::move(links));
  captured.set("files", std::move(files));
  captured.set("binary", std::move(binary));
  return json::Object{{"format", 1}, {"captured", std::move(captured)}};
}

}  // namespace gdr::observed
