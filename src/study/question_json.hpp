#pragma once

#include "src/common/json_reader.hpp"
#include "src/study/ask.hpp"

namespace gdr::study {

// The JSON form of questions: docs/output.md, "The flows file". Members that are absent are as in a
// Question that nothing was said of. Each throws InputError "FILE: at PATH: ...".

/// "path", "operation", "memory", "size", "initiator", "work_request", "inline", "pageable",
/// "window".
void read_transfer(json::ObjectReader& object, Transfer& transfer);
/// "from", "to", "via".
void read_ends(json::ObjectReader& object, const Topology& topology, Transfer& transfer);
/// "depth", "queue_pairs", "completion_every", "bidirectional".
void read_options(json::ObjectReader& object, sim::Options& options);

/// All of them, and "range".
Question read_question(const json::Node& node, const Topology& topology);
/// What read_question() reads back as an equal question.
json::Value to_json(const Graph& graph, const Question& question);

}  // namespace gdr::study
