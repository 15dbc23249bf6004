// Every parameter of every kind of model moves some answer: a prediction, a finding of `gdr check`
// or the topology file for NCCL. A parameter that moves nothing is dead, or a bug hides it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>
#include <set>

#include "src/common/error.hpp"
#include "src/nccl/xml/write.hpp"
#include "src/verdict/verdict.hpp"
#include "src/verdict/verdict_json.hpp"
#include "tests/support/simulation.hpp"

namespace gdr::sim {
namespace {

using namespace gdr::literals;

// ---- machines -----------------------------------------------------------------------------------

/// What the hosts of a small cluster are made of.
struct Parts {
  std::string cpu;
  std::string gpu;
  std::string nic;
  std::string pci_switch;
  std::string nvme;
  std::vector<std::string> settings;
};

std::string replaced(std::string text, const std::string& mark, const std::string& by) {
  for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + by.size()))
    text.replace(at, mark.size(), by);
  return text;
}

/// Two hosts with pairs of every distance: below one switch, inside one host bridge, below two host
/// bridges, across sockets, joined by NVLink. Links and ACS are left to the models.
json::Value cluster_of(const Parts& parts) {
  std::string host = R"({
    "name": "HOST",
    "software": {"kernel": "6.1", "iommu": "off", "nvidia_peermem": true},
    "sockets": [{"name": "cpu0", "model": "CPU"}, {"name": "cpu1", "model": "CPU"}],
    "numa_nodes": [{"name": "numa0", "socket": "cpu0"}, {"name": "numa1", "socket": "cpu1"}],
    "devices": [
      {"name": "hb0", "kind": "host-bridge", "under": "numa0"},
      {"name": "hb1", "kind": "host-bridge", "under": "numa0"},
      {"name": "hb2", "kind": "host-bridge", "under": "numa1"},
      {"name": "sw0", "kind": "switch", "model": "SWITCH", "under": "hb0"},
      {"name": "gpu0", "kind": "gpu", "model": "GPU", "under": "sw0"},
      {"name": "gpu1", "kind": "gpu", "model": "GPU", "under": "sw0"},
      {"name": "nic0", "kind": "nic", "model": "NIC", "under": "sw0"},
      {"name": "nvme0", "kind": "nvme", "model": "NVME", "under": "sw0"},
      {"name": "gpu2", "kind": "gpu", "model": "GPU", "under": "hb0"},
      {"name": "gpu3", "kind": "gpu", "model": "GPU", "under": "hb1"},
      {"name": "nic1", "kind": "nic", "model": "NIC", "under": "hb1"},
      {"name": "gpu4", "kind": "gpu", "model": "GPU", "under": "hb2"}
    ],
    "nvlinks": [{"from": "gpu0", "to": "gpu1", "count": 12, "model": "nvlink4"}]
  })";
  for (const auto& [mark, model] : std::map<std::string, std::string>{{"CPU", parts.cpu},
                                                                      {"GPU", parts.gpu},
                                                                      {"NIC", parts.nic},
                                                                      {"SWITCH", parts.pci_switch},
                                                                      {"NVME", parts.nvme}})
    host = replaced(host, "\"model\": \"" + mark + "\"", "\"model\": \"" + model + "\"");
  const std::string start = R"({"format": 1, "fabric": {"model": "infiniband"}, "name": ")";
  return json::parse(start + parts.cpu + "\", \"hosts\": [" + replaced(host, "HOST", "h0") + "," +
                         replaced(host, "HOST", "h1") + "]}",
                     parts.cpu);
}

// ---- questions ----------------------------------------------------------------------------------

/// The product's answer to one question.
struct Answer {
  std::vector<std::pair<std::string, double>> numbers;
  std::string text;
  bool refused = false;
};

struct Question {
  std::string name;
  std::shared_ptr<const Lab> lab;
  std::function<Answer(const Hardware&)> ask;
  Answer usual;
  int moved = 0;  ///< number of parameters that changed the answer
};

Answer of_prediction(const Prediction& p) {
  return {{{"latency (us)", p.latency.us()},
           {"completion (us)", p.completion.us()},
           {"rate (GB/s)", p.bandwidth.gigabytes_per_second()},
           {"cores", p.cpu_cores},
           {"host memory (B/B)", p.host_memory_bytes_per_byte},
           {"DRAM (B/B)", p.dram_bytes_per_byte},
           {"PCIe (B/B)", p.pcie_bytes_per_byte}},
          {},
          false};
}

using Edit = std::function<void(Transfer&, Options&)>;

class Questions {
 public:
  void add(const std::string& name, std::shared_ptr<const Lab> lab,
           std::function<Answer(const Hardware&)> ask) {
    Question question{name, std::move(lab), std::move(ask), {}, 0};
    question.usual = answer(question, models());
    EXPECT_FALSE(question.usual.refused) << question.name << ": " << question.usual.text;
    all_.push_back(std::move(question));
  }

  void predict_one(std::shared_ptr<const Lab> lab, const std::string& from, const std::string& to,
                   PathKind path, Bytes size, const std::string& remark = {},
                   const Edit& edit = {}) {
    Transfer transfer;
    transfer.path = path;
    transfer.size = size;
    if (path == PathKind::rdma) transfer.memory = MemoryKind::host;
    set_ends(lab->topology, find_end(lab->topology, from), find_end(lab->topology, to), transfer);
    Options options;
    if (edit) edit(transfer, options);
    add(fmt::format("{} {} {} to {} {} {}", lab->topology.name, to_string(path), from, to,
                    to_string(size), remark),
        lab, [transfer, options](const Hardware& hardware) {
          return of_prediction(predict(simulator(), hardware, transfer, options));
        });
  }

  void predict_many(std::shared_ptr<const Lab> lab, PathKind path,
                    const std::vector<std::pair<std::string, std::string>>& ends) {
    std::vector<Transfer> transfers;
    for (const auto& [from, to] : ends) {
      Transfer& transfer = transfers.emplace_back();
      transfer.path = path;
      transfer.size = 64_MiB;
      set_ends(lab->topology, find_end(lab->topology, from), find_end(lab->topology, to), transfer);
    }
    add(fmt::format("{} {} {} flows", lab->topology.name, to_string(path), ends.size()), lab,
        [transfers](const Hardware& hardware) {
          const StreamRates rates = predict_streams(simulator(), hardware, transfers, {});
          return Answer{{{"rate (GB/s)", rates.sum.gigabytes_per_second()}}, {}, false};
        });
  }

  void check(const std::shared_ptr<const Lab>& lab) {
    add(lab->topology.name + " check", lab, [](const Hardware& hardware) {
      const Verdict verdict = judge(hardware.graph(), hardware.models());
      return Answer{{}, json::dump(to_json(verdict, "")), false};
    });
    add(lab->topology.name + " export nccl-xml", lab, [](const Hardware& hardware) {
      return Answer{{}, export_nccl_xml(hardware.graph().topology(), 0, &hardware.models()), false};
    });
  }

  static Answer answer(const Question& question, const ModelLibrary& library) {
    try {
      return question.ask(Hardware(question.lab->graph, library));
    } catch (const InputError& error) {
      return {{}, error.what(), true};
    }
  }

  /// Questions whose answer most parameters moved so far come first.
  std::vector<Question*> in_order() {
    std::vector<Question*> order;
    for (Question& question : all_) order.push_back(&question);
    std::stable_sort(order.begin(), order.end(),
                     [](const Question* a, const Question* b) { return a->moved > b->moved; });
    return order;
  }

 private:
  std::vector<Question> all_;
};

void reads(Transfer& transfer, Options& /*options*/) { transfer.operation = Operation::read; }
void sends(Transfer& transfer, Options& /*options*/) { transfer.operation = Operation::send; }

void ask_between_hosts(Questions& questions, const std::shared_ptr<const Lab>& lab) {
  const std::string gpu = "h0/gpu0";
  const std::string other = "h1/gpu0";
  questions.predict_one(lab, gpu, other, PathKind::gdr, 64_MiB);
  questions.predict_one(lab, gpu, other, PathKind::gdr, 4_KiB, "read", reads);
  questions.predict_one(lab, gpu, other, PathKind::gdr, 64_MiB, "read", reads);
  questions.predict_one(lab, "h0/gpu3", "h1/gpu3", PathKind::gdr, 64_MiB);
  questions.predict_one(lab, gpu, other, PathKind::rdma, 8_B);
  questions.predict_one(lab, gpu, other, PathKind::rdma, 200_B, "inline",
                        [](Transfer& t, Options&) { t.inlined = true; });
  questions.predict_one(lab, gpu, other, PathKind::rdma, 8_B, "request fetched",
                        [](Transfer& t, Options&) { t.push_request = false; });
  questions.predict_one(lab, gpu, other, PathKind::staged, 64_MiB);
  questions.predict_one(lab, gpu, other, PathKind::staged, 1_MiB, "send", sends);
  for (const Bytes size : {4_KiB, 16_MiB})
    questions.predict_one(lab, gpu, other, PathKind::tcp, size);
  for (const Initiator initiator : {Initiator::gpu, Initiator::proxy})
    questions.predict_one(lab, gpu, other, PathKind::gdr, 8_B, std::string(to_string(initiator)),
                          [=](Transfer& t, Options&) { t.initiator = initiator; });
}

void ask_inside_a_host(Questions& questions, const std::shared_ptr<const Lab>& lab) {
  const std::string gpu = "h0/gpu0";
  for (const std::string other : {"h0/gpu2", "h0/gpu3", "h0/gpu4"}) {
    questions.predict_one(lab, gpu, other, PathKind::p2p, 64_MiB);
    questions.predict_one(lab, gpu, other, PathKind::p2p, 64_MiB, "read", reads);
  }
  questions.predict_many(lab, PathKind::p2p, {{gpu, "h0/gpu2"}, {"h0/gpu1", "h0/gpu3"}});
  questions.predict_many(lab, PathKind::copy, {{gpu, "h0/numa1"}, {"h0/gpu3", "h0/numa1"}});
  questions.predict_one(lab, gpu, "h0/gpu1", PathKind::nvlink, 64_MiB);
  questions.predict_one(lab, gpu, "h0/gpu3", PathKind::load_store, 4_KiB);
  questions.predict_one(lab, gpu, "h0/numa0", PathKind::copy, 64_MiB, "pageable",
                        [](Transfer& t, Options&) { t.pageable = true; });
  questions.predict_one(lab, gpu, "h0/numa0", PathKind::copy, 64_MiB, "both directions",
                        [](Transfer&, Options& options) { options.bidirectional = true; });
  for (const Bytes size : {4_KiB, 64_MiB}) {
    questions.predict_one(lab, "h0/nvme0", gpu, PathKind::gds, size);
    questions.predict_one(lab, gpu, "h0/nvme0", PathKind::gds, size);
  }
}

/// The window of a queue pair shows where the wire is long and the NIC reads far ahead.
void ask_over_a_long_wire(Questions& questions, const std::shared_ptr<const Lab>& lab) {
  Transfer transfer = lab->transfer("h0/gpu0", "h1/gpu0", PathKind::gdr, 1_MiB);
  transfer.via = {find_device(lab->topology, "h0/nic0")};
  questions.add("gdr over a long wire", lab, [transfer](const Hardware& hardware) {
    FabricModel fabric = hardware.fabric();
    fabric.cable_latency.value = Duration{1e-3};
    NicModel nic = hardware.nic(hardware.graph().device(transfer.via.front()));
    nic.outstanding_reads.value = 64_MiB;
    const ModelLibrary library = hardware.models().with(std::move(fabric)).with(std::move(nic));
    return of_prediction(predict(simulator(), Hardware(hardware.graph(), library), transfer, {}));
  });
}

/// A socket's window also shows there, and so does the buffer of a NIC with usual reads.
void ask_windows_over_a_long_wire(Questions& questions, const std::shared_ptr<const Lab>& lab,
                                  PathKind path) {
  const Transfer transfer = lab->transfer("h0/gpu0", "h1/gpu0", path, 64_MiB);
  const std::string name = fmt::format("{}, windows over a long wire", to_string(path));
  questions.add(name, lab, [transfer](const Hardware& hardware) {
    FabricModel fabric = hardware.fabric();
    fabric.cable_latency.value = Duration{1e-3};
    const ModelLibrary library = hardware.models().with(std::move(fabric));
    return of_prediction(predict(simulator(), Hardware(hardware.graph(), library), transfer, {}));
  });
}

/// Reads of memory that neither the cache nor the IOTLB holds.
void ask_spread_over_memory(Questions& questions, const std::shared_ptr<const Lab>& lab) {
  for (const Bytes window : {1_MiB, 6_MiB, 1_GiB}) {
    const auto spread = [=](Transfer& t, Options&) { t.window = window; };
    const std::string remark = "window " + to_string(window);
    questions.predict_one(lab, "h0/numa0", "h0/nic1", PathKind::dma, 64_B, remark, spread);
    questions.predict_one(lab, "h0/nic1", "h0/numa0", PathKind::dma, 64_B, remark, spread);
  }
}

Questions all_questions() {
  const auto cluster = [](const Parts& parts) {
    return std::make_shared<const Lab>(cluster_of(parts), parts.settings);
  };
  const auto shipped = [](const std::string& file) {
    return std::make_shared<const Lab>("topologies/" + file);
  };
  Questions questions;
  const auto turin =
      cluster({"epyc-turin", "h100-pcie", "connectx-7", "switchtec-gen5", "gen5", {}});
  ask_between_hosts(questions, turin);
  ask_inside_a_host(questions, turin);
  questions.check(turin);
  const auto milan = cluster({"epyc-milan",
                              "p40",
                              "connectx-6-hdr",
                              "pex88096",
                              "gen4",
                              {"relaxed_ordering=false", "fabric.switches=16"}});
  ask_between_hosts(questions, milan);
  ask_inside_a_host(questions, milan);
  questions.check(milan);
  const auto genoa = cluster({"epyc-genoa",
                              "h100-pcie",
                              "generic-ethernet",
                              "pex89144",
                              "pm1743",
                              {"fabric.model=roce-v2"}});
  questions.predict_one(genoa, "h0/gpu0", "h1/gpu0", PathKind::tcp, 16_MiB);
  questions.predict_one(genoa, "h0/gpu3", "h0/gpu0", PathKind::p2p, 64_MiB);
  const auto broadwell = cluster({"broadwell-ep",
                                  "mi210",
                                  "nfp-6000",
                                  "pex8796",
                                  "gen3",
                                  {"iommu=translate", "iommu_page_size=4KiB"}});
  ask_inside_a_host(questions, broadwell);
  ask_spread_over_memory(questions, broadwell);
  questions.check(broadwell);
  ask_over_a_long_wire(questions, milan);
  for (const PathKind path : {PathKind::tcp, PathKind::gdr})
    ask_windows_over_a_long_wire(questions, milan, path);
  const auto large_pages =
      cluster({"broadwell-ep", "mi210", "nfp-6000", "pex8796", "gen3", {"iommu=translate"}});
  ask_spread_over_memory(questions, large_pages);
  const auto a100 = shipped("servers/dgx-a100.json");
  questions.predict_one(a100, "h0/gpu0", "h0/gpu1", PathKind::nvlink, 4_KiB);
  questions.check(a100);
  const auto grace = shipped("clusters/two-gh200.json");
  questions.predict_one(grace, "h0/gpu0", "h0/numa0", PathKind::copy, 64_MiB);
  questions.predict_one(grace, "h0/gpu0", "h1/gpu0", PathKind::gdr, 64_MiB);
  return questions;
}

// ---- variations ---------------------------------------------------------------------------------

/// The models of a kind that a topology names, or that are behind what it names.
std::set<std::string> models_in(const Topology& topology, const std::string& kind) {
  std::set<std::string> names;
  if (kind == PcieModel::kind) names = {"gen3", "gen4", "gen5"};
  if (kind == NvlinkModel::kind) names = {"nvlink3"};
  if (kind == FabricModel::kind && topology.fabric) names = {topology.fabric->model};
  for (const Host& host : topology.hosts) {
    if (kind == CpuModel::kind)
      for (const Socket& socket : host.sockets) names.insert(socket.model);
    for (const Device& device : host.devices)
      if (to_string(device.kind) == kind && !device.model.empty()) names.insert(device.model);
    if (kind == NvlinkModel::kind)
      for (const NvLink& link : host.nvlinks)
        if (!link.model.empty()) names.insert(link.model);
  }
  // Models that no topology names are behind all of them.
  if (names.empty())
    for (const std::string& name : models().names(kind)) names.insert(name);
  return names;
}

std::vector<Bytes> others(const Bytes& value) { return {value * 2, {value.count / 2}}; }
std::vector<Bandwidth> others(const Bandwidth& value) { return {value * 2, value * 0.5}; }
std::vector<Duration> others(const Duration& value) { return {value * 2, value * 0.5}; }
std::vector<std::int64_t> others(const std::int64_t& value) {
  return {value * 2, value / 2, value + 1, value - 1};
}
std::vector<bool> others(const bool& value) { return {!value}; }
/// A different word; for a speed grade, half of it.
std::vector<std::string> others(const std::string& value) {
  std::vector<std::string> words{"host-bridge", "none", "srd", "infiniband", "ethernet"};
  if (const auto dash = value.find("DDR"); dash != std::string::npos) {
    const auto number = value.find('-') + 1;
    words = {value.substr(0, number) + std::to_string(std::stoi(value.substr(number)) / 2)};
  }
  std::erase(words, value);
  return words;
}

/// A value for an optional parameter that no model has yet.
void set_small(Bytes& value) { value = 64_B; }
void set_small(Bandwidth& value) { value = 1_GBps; }
void set_small(Duration& value) { value = 1_us; }
void set_small(std::int64_t& value) { value = 1; }
void set_small(std::string& value) { value = "text"; }

template <typename T>
std::vector<T> allowed_others(const Declaration<T>& declaration, const Parameter<T>& parameter) {
  std::vector<T> list = others(parameter.value);
  std::erase_if(list, [&](const T& value) { return !declaration.rule(value).empty(); });
  return list;
}
template <typename T>
std::vector<T> allowed_others(const Declaration<T>& declaration,
                              const std::optional<Parameter<T>>& parameter) {
  if (parameter) return allowed_others(declaration, *parameter);
  std::vector<T> list(1);
  set_small(list.front());
  return list;
}

template <typename T>
void set_value(Parameter<T>& parameter, const T& value) {
  parameter.value = value;
}
template <typename T>
void set_value(std::optional<Parameter<T>>& parameter, const T& value) {
  if (!parameter) parameter.emplace();
  parameter->value = value;
}

/// The libraries with the other values of one parameter of one model.
template <typename Model>
std::vector<ModelLibrary> variations(const Model& model, const std::string& name) {
  std::vector<ModelLibrary> list;
  for (bool more = true; more;) {
    Model changed = model;
    more = false;
    for_each_parameter(
        [&](const auto& declaration, auto& field) {
          if (name != declaration.name) return;
          const auto values = allowed_others(declaration, field);
          more = list.size() < values.size();
          if (more) set_value(field, values[list.size()]);
        },
        changed);
    if (more) list.push_back(models().with(std::move(changed)));
  }
  return list;
}

// ---- the search ---------------------------------------------------------------------------------

constexpr double least_move = 0.001;

/// A text on what moved; empty when nothing did.
std::string moved(const Answer& before, const Answer& after) {
  if (after.refused) return "refused: " + after.text;
  for (std::size_t i = 0; i < before.numbers.size(); ++i) {
    const auto& [name, was] = before.numbers[i];
    const double is = after.numbers.at(i).second;
    const double share = was != 0 ? is / was - 1 : is;
    if (std::abs(share) > least_move)
      return fmt::format("{} {:.4g} -> {:.4g} ({:+.1f} %)", name, was, is, share * 100);
  }
  if (before.text == after.text) return {};
  const auto differs =
      std::mismatch(before.text.begin(), before.text.end(), after.text.begin(), after.text.end());
  const auto begin = static_cast<std::size_t>(differs.first - before.text.begin());
  const auto excerpt = [&](const std::string& text) {
    return replaced(text.substr(begin - std::min<std::size_t>(begin, 30), 60), "\n", " ");
  };
  return fmt::format("\"{}\" -> \"{}\"", excerpt(before.text), excerpt(after.text));
}

/// A text on the first answer that the parameter moves. A refusal counts when nothing else moves.
template <typename Model>
std::string reaction_to(const std::string& parameter, Questions& questions) {
  std::string refusal;
  for (Question* question : questions.in_order())
    for (const std::string& name : models_in(question->lab->topology, Model::kind))
      for (const ModelLibrary& library : variations(models().get<Model>(name), parameter)) {
        const Answer answer = Questions::answer(*question, library);
        const std::string what = moved(question->usual, answer);
        if (what.empty()) continue;
        const std::string text = fmt::format("{} in {}: {}", name, question->name, what);
        if (answer.refused) {
          refusal = text;
          continue;
        }
        ++question->moved;
        return text;
      }
  return refusal;
}

TEST(ParameterEffect, EveryParameterMovesAnAnswer) {
  Questions questions = all_questions();
  int count = 0;
  for_each_kind([&]<typename Model>() {
    const Model any;
    for_each_parameter(
        [&](const auto& declaration, const auto& /*field*/) {
          const std::string what = reaction_to<Model>(declaration.name, questions);
          fmt::print("{} {}: {}\n", Model::kind, declaration.name, what.empty() ? "NOTHING" : what);
          EXPECT_FALSE(what.empty())
              << "models/" << Model::kind << " " << declaration.name << " moves no answer";
          ++count;
        },
        any);
  });
  fmt::print("{} parameters\n", count);
  EXPECT_GT(count, 0);
}

}  // namespace
}  // namespace gdr::sim
