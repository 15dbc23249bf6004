#include "src/study/question_json.hpp"

#include <array>

#include "src/common/error.hpp"

namespace gdr::study {
namespace {

constexpr std::array<std::string_view, 2> memory_names{"gpu", "host"};
constexpr std::array<std::string_view, 2> request_names{"fetch", "push"};

/// Runs `parse` on the node's text; its errors get the node's place.
template <typename Parse>
auto parsed(const json::Node& node, Parse parse) {
  try {
    return parse(node.string());
  } catch (const InputError& error) {
    node.fail(error.what());
  }
}

}  // namespace

void read_transfer(json::ObjectReader& object, Transfer& transfer) {
  transfer.path =
      parsed(object.required("path"), [](const std::string& text) { return parse_path(text); });
  transfer.size = object.required("size").bytes();
  if (const auto n = object.optional("operation"))
    transfer.operation = parsed(*n, [](const std::string& text) { return parse_operation(text); });
  if (const auto n = object.optional("memory"))
    transfer.memory = static_cast<MemoryKind>(n->choice(memory_names));
  if (transfer.path == PathKind::rdma) transfer.memory = MemoryKind::host;
  if (const auto n = object.optional("initiator"))
    transfer.initiator = parsed(*n, [](const std::string& text) { return parse_initiator(text); });
  if (const auto n = object.optional("work_request"))
    transfer.push_request = n->choice(request_names) == 1;
  if (const auto n = object.optional("inline")) transfer.inlined = n->boolean();
  if (const auto n = object.optional("pageable")) transfer.pageable = n->boolean();
  if (const auto n = object.optional("window")) {
    transfer.window = n->bytes();
    if (transfer.window->count == 0) n->fail("a \"window\" of 0 holds nothing");
  }
}

void read_ends(json::ObjectReader& object, const Topology& topology, Transfer& transfer) {
  const auto end = [&](const std::string& text) { return find_end(topology, text); };
  const End from = parsed(object.required("from"), end);
  const json::Node to = object.required("to");
  const End reached = parsed(to, end);
  parsed(to, [&](const std::string&) { set_ends(topology, from, reached, transfer); });
  if (const auto via = object.optional("via"))
    for (const json::Node& nic : via->array())
      transfer.via.push_back(
          parsed(nic, [&](const std::string& text) { return find_device(topology, text); }));
}

void read_options(json::ObjectReader& object, sim::Options& options) {
  if (const auto n = object.optional("depth"))
    options.depth = static_cast<int>(n->integer(1, 1 << 16));
  if (const auto n = object.optional("queue_pairs"))
    options.queue_pairs = static_cast<int>(n->integer(1, 4096));
  if (const auto n = object.optional("completion_every"))
    options.completion_every = static_cast<int>(n->integer(1, 1 << 16));
  if (const auto n = object.optional("bidirectional")) options.bidirectional = n->boolean();
}

Question read_question(const json::Node& node, const Topology& topology) {
  json::ObjectReader object(node);
  Question question;
  read_ends(object, topology, question.transfer);
  read_transfer(object, question.transfer);
  read_options(object, question.options);
  if (const auto n = object.optional("range")) question.range = n->boolean();
  object.finish();
  return question;
}

json::Value to_json(const Graph& graph, const Question& question) {
  const Transfer& transfer = question.transfer;
  json::Value value(json::Object{{"from", from_label(graph, transfer)},
                                 {"to", to_label(graph, transfer)},
                                 {"path", to_string(transfer.path)},
                                 {"operation", to_string(transfer.operation)},
                                 {"memory", memory_names.at(transfer.memory == MemoryKind::host)},
                                 {"size", to_string(transfer.size)},
                                 {"initiator", to_string(transfer.initiator)}});
  if (transfer.push_request) value.set("work_request", request_names.at(*transfer.push_request));
  value.set("inline", transfer.inlined);
  value.set("pageable", transfer.pageable);
  if (transfer.window) value.set("window", to_string(*transfer.window));
  if (!transfer.via.empty()) {
    json::Array via;
    for (const DeviceId nic : transfer.via) via.emplace_back(label(graph.topology(), nic));
    value.set("via", std::move(via));
  }
  value.set("depth", std::int64_t{question.options.depth});
  value.set("queue_pairs", std::int64_t{question.options.queue_pairs});
  value.set("completion_every", std::int64_t{question.options.completion_every});
  value.set("bidirectional", question.options.bidirectional);
  value.set("range", question.range);
  return value;
}

}  // namespace gdr::study
