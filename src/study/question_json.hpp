#pragma once

#include "src/common/json_reader.hpp"
#include "src/study/ask.hpp"

namespace gdr::study {

// The JSON form of questions: docs/output.md, "The flows file". Absent members have the defaults of
// Question. Each throws InputError "FILE: at PATH: ...".

/// "path", "operation", "memory", "size", "initiator", "work_request", "inline", "pageable",
/// "window".
void read_transfer(json::ObjectReader& object, Transfer& transfer);
/// "from", "to", "via".
void read_ends(json::ObjectReader& object, const Topology& topology, Transfer& transfer);
/// "depth", "queue_pairs", "completion_every", "bidirectional".
void read_options(json::ObjectReader& object, sim::Options& options);

/// All of them, and "range".
Question read_question(const json::Node& node, const Topology& topology);
/// The JSON from which read_question() reads an equal question.
json::Value to_json(const Graph& graph, const Question& question);

}  // namespace gdr::study
