#include "src/report/verify_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "src/report/output.hpp"

namespace gdr::report {
namespace {

using study::Advice;
using study::Candidate;
using study::Change;
using study::Condition;
using study::Fit;
using study::Sureness;

std::string link_text(const Condition& condition, std::string_view what) {
  return fmt::format("{} ({}, not {})", what, to_string(*condition.link),
                     to_string(*condition.usual_link));
}

std::string candidate_text(const Candidate& candidate) {
  const std::string condition = condition_text(candidate.condition);
  return condition.empty() ? std::string(to_string(candidate.path))
                           : fmt::format("{} with {}", to_string(candidate.path), condition);
}

/// Besides the best fit: what fits about as well, and what the topology gives.
std::string beside(const Fit& fit) {
  const Candidate& best = fit.candidates.front();
  if (fit.sureness == Sureness::open) {
    std::string others;
    std::size_t named = 0;
    for (std::size_t i = 1; i < fit.candidates.size() && named < 2; ++i)
      if (distance_of(fit.candidates[i]) <= distance_of(best) + 0.05) {
        others += (others.empty() ? "" : ", ") + candidate_text(fit.candidates[i]);
        ++named;
      }
    return others.empty() ? "" : fmt::format(" {} would give about as much.", others);
  }
  const Candidate* expected = usual(fit);
  if (fit.sureness != Sureness::none || expected == nullptr || !fit.figure.bandwidth ||
      fit.figure.peer_to_peer == false)
    return {};
  return fmt::format(" The topology gives {:.4g} GB/s by {}; this is {:.0f} % of it.",
                     expected->predicted * 1e-9, to_string(expected->path),
                     100 * (1 + expected->deviation));
}

std::string fitted_text(const Fit& fit) {
  if (!is_predicted(fit.figure))
    return "The test's latencies are times of tiny copies that are queued one behind the other "
           "(with --sm_copy: of kernels): what an engine needs between "
           "two copies, which the models do not have.";
  if (fit.candidates.empty())
    return of_storage(fit.figure) && fit.from.empty()
               ? "The topology shows no drive."
               : "No path between the two exists in this topology.";
  const Candidate& best = fit.candidates.front();
  return fmt::format("Fits {}{}, {:+.0f} %.",
                     fit.sureness == Sureness::none ? "no path; nearest is " : "",
                     candidate_text(best), best.deviation * 100) +
         beside(fit);
}

std::string figure_text(const study::Figure& figure) {
  const std::string ends =
      figure.gpus ? fmt::format(" GPU {} to {}", figure.gpus->first, figure.gpus->second) : "";
  const std::string peer = !figure.peer_to_peer   ? ""
                           : *figure.peer_to_peer ? ", P2P on"
                                                  : ", P2P off";
  return fmt::format("{}{}, {}{}{}: {}", figure.tool, ends, to_string(figure.size),
                     figure.bidirectional ? ", both directions" : "", peer,
                     figure.bandwidth
                         ? fmt::format("{:.4g} GB/s", figure.bandwidth->gigabytes_per_second())
                         : fmt::format("{:.4g} us", figure.latency->us()));
}

std::string predicted_text(const study::Fit& fit, const study::Candidate& candidate) {
  return fit.figure.bandwidth ? fmt::format("{:.4g} GB/s", candidate.predicted * 1e-9)
                              : fmt::format("{:.4g} us", candidate.predicted * 1e6);
}

}  // namespace

std::string condition_text(const Condition& condition) {
  switch (condition.change) {
    case Change::none:
      return {};
    case Change::half_lanes:
      return link_text(condition, fmt::format("half the lanes of {}", condition.device));
    case Change::slower_generation:
      return link_text(condition, condition.device + " one generation slower");
    case Change::idle_speed:
      return link_text(condition, condition.device + " at the speed of an idle link");
    case Change::half_port_rate:
      return fmt::format("ports at half of their rate ({:.0f} Gb/s)",
                         condition.port_rate->bytes_per_second * 8e-9);
    case Change::acs_redirects:
      return "ACS redirects at all ports";
    case Change::far_nic:
      return "the far NIC " + condition.device;
    case Change::all_drives:
      return fmt::format("all {} drives", condition.drives);
  }
  return {};
}

std::string verdict_text(const Fit& fit) {
  std::string text = fitted_text(fit);
  for (const study::BlockedPath& blocked : fit.blocked)
    text += fmt::format(" The verdict blocks {} here ({}).", to_string(blocked.path), blocked.rule);
  if (fit.figure.gpu_memory == false && fit.figure.tool.starts_with("ib_"))
    text +=
        " The test moved host memory (no --use_cuda), or memory that only looks like a GPU's "
        "(cuMemAllocManaged).";
  if (fit.assumed_nic)
    text += fmt::format(
        " The model of NIC {0} is not known: {1:.0f} Gb/s were assumed (--set "
        "{0}.model=connectx-7, or .port_rate=400Gb/s).",
        fit.assumed_nic->nic, fit.assumed_nic->port_rate.bytes_per_second * 8e-9);
  return text;
}

std::string next_text(const Fit& fit) {
  switch (fit.advice) {
    case Advice::nothing:
      return "Nothing: this is what the topology gives.";
    case Advice::compare_p2p_off:
      return "Compare P2P on with P2P off: off is several times as long where P2P works. The "
             "bandwidths of the same run are fitted.";
    case Advice::name_drives:
      return "Give the drive and the GPU that were used (--from, --to), or a topology that has the "
             "drives.";
    case Advice::vary_storage_run:
      return "Compare with the same run on fewer files, with more threads (-w) and through the CPU "
             "(-x 1); the file system or a RAID may bound it.";
    case Advice::ask_gds_tools:
      return "Several paths give as much here: cufile.log and gdscheck -p say whether GPUDirect "
             "Storage was used.";
    case Advice::ask_why_compatibility:
      return "The data goes through host memory (compatibility mode): gdscheck -p says why, "
             "gdr doctor looks for the cause.";
    case Advice::look_further:
      return "Look at what the topology leaves open (gdr check), at other load, at the tool's "
             "options; give the NICs and GPUs that were used (--from, --to).";
    case Advice::ask_gdr_tools:
      return "Several explanations fit: gdr doctor looks whether GPUDirect RDMA is used, NCCL says "
             "it in its log (gdr nccl --log), and lspci -vvv under load shows the links (LnkSta).";
    case Advice::compare_links:
      return "Compare LnkSta with LnkCap under load (lspci -vvv) of that device and of the port "
             "above it; reseat the card, look at the slot's wiring and the BIOS.";
    case Advice::see_port_rates:
      return "See at which rate the ports run (ibstat, ethtool): cable, switch port, or a splitter "
             "may halve it.";
    case Advice::clear_acs:
      return "Read ACSCtl of the bridges as root (lspci -vvv) and clear ReqRedir and CmpltRedir.";
    case Advice::see_nic:
      return "See which NIC was used (NCCL_DEBUG=INFO, UCX_LOG_LEVEL=info) and choose the GPU's "
             "own.";
    case Advice::p2p_was_off:
      return "Nothing: the tool had peer-to-peer switched off.";
    case Advice::find_why_staged:
      return "GPUDirect RDMA is not used: gdr doctor looks for the cause; NCCL says it in its log "
             "(gdr nccl --log).";
    case Advice::test_gpu_memory:
      return "The test moved host memory, which proves nothing about GPUDirect RDMA: run it with "
             "--use_cuda=0.";
  }
  return {};
}

std::string to_text(const std::vector<study::Fit>& fits) {
  std::string out;
  for (const study::Fit& fit : fits) {
    out += fmt::format("{}{}\n", out.empty() ? "" : "\n", wrapped(figure_text(fit.figure), 2));
    if (!fit.from.empty()) out += fmt::format("  {} to {}\n", fit.from, fit.to);
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < std::min<std::size_t>(fit.candidates.size(), 5); ++i) {
      const auto& c = fit.candidates[i];
      rows.push_back({fmt::format("    {}", to_string(c.path)), predicted_text(fit, c),
                      fmt::format("{:+.0f} %", c.deviation * 100)});
      if (const std::string condition = condition_text(c.condition); !condition.empty())
        rows.back().front() += ", " + condition;
      constexpr std::size_t widest = 58;
      if (rows.back().front().size() > widest)
        rows.back().front().replace(widest - 3, std::string::npos, "...");
    }
    if (!rows.empty()) out += table(rows);
    out += "  " +
           wrapped(fmt::format("{} ({})", verdict_text(fit), to_string(fit.sureness)), 2, 78) +
           "\n";
    out += "  " + wrapped("Next: " + next_text(fit), 2, 78) + "\n";
  }
  return out;
}

json::Value to_json(const std::vector<study::Fit>& fits) {
  json::Array list;
  for (const study::Fit& fit : fits) {
    json::Value item =
        json::Object{{"tool", fit.figure.tool},
                     {"line", json::Value(static_cast<std::int64_t>(fit.figure.line))},
                     {"size_bytes", json::Value(fit.figure.size.count)}};
    if (fit.figure.bandwidth)
      item.set("measured_bytes_per_second", rounded(fit.figure.bandwidth->bytes_per_second));
    else item.set("measured_seconds", rounded(fit.figure.latency->seconds));
    item.set("bidirectional", fit.figure.bidirectional);
    if (!fit.from.empty()) item.set("from", fit.from);
    if (!fit.to.empty()) item.set("to", fit.to);
    json::Array candidates;
    for (const auto& c : fit.candidates) {
      json::Value one =
          json::Object{{"path", to_string(c.path)}, {"condition", condition_text(c.condition)}};
      one.set(fit.figure.bandwidth ? "predicted_bytes_per_second" : "predicted_seconds",
              rounded(c.predicted));
      one.set("deviation", rounded(c.deviation));
      candidates.push_back(std::move(one));
    }
    item.set("candidates", std::move(candidates));
    item.set("sureness", std::string(to_string(fit.sureness)));
    item.set("verdict", verdict_text(fit));
    item.set("next", next_text(fit));
    list.push_back(std::move(item));
  }
  return json::Object{{"format", 1}, {"figures", std::move(list)}};
}

}  // namespace gdr::report
