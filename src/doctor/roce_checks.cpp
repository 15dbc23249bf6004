#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "src/common/terminal_text.hpp"
#include "src/doctor/checks.hpp"

namespace gdr::doctor {
namespace {

std::uint64_t counter(const Facts& facts, const std::string& name) {
  const auto found = facts.counters.find(name);
  return found != facts.counters.end() ? found->second : 0;
}

void flow_control(const Facts& facts, Checks& checks) {
  for (const FlowControl& control : facts.flow_control) {
    const bool any =
        std::any_of(control.enabled.begin(), control.enabled.end(), [](bool on) { return on; });
    if (!control.enabled.empty() && !any)
      checks.push_back(
          {"roce-lossy", State::problem, Severity::warning,
           "PFC is off for all eight priorities: RoCE loses packets when a queue is full.",
           "Enable PFC and ECN for the priority of the RDMA traffic, on NICs (mlnx_qos --pfc "
           "0,0,0,1,0,0,0,0) and switches."});
    if (any && control.trust == "pcp")
      checks.push_back({"roce-trust-pcp", State::problem, Severity::note,
                        "The NIC trusts PCP, the priority of VLAN tags: untagged RoCE v2 traffic "
                        "gets priority 0.",
                        "Make it trust DSCP (mlnx_qos --trust dscp), on switches as well."});
    if (any && control.trust != "pcp")
      checks.push_back(
          {"roce-pfc", State::fine, Severity::note, "PFC is on for at least one priority.", ""});
  }
  if (facts.ecn == false)
    checks.push_back(
        {"roce-ecn-off", State::problem, Severity::note,
         "ECN is off for RoCE (roce_np/enable is 0): nothing slows senders down before queues are "
         "full.",
         "Enable it: /sys/class/net/INTERFACE/ecn/roce_np/enable/PRIORITY and roce_rp."});
}

/// True if all bytes are in priority 0 while PFC and ECN serve another priority.
void priorities(const Facts& facts, Checks& checks) {
  std::uint64_t other = 0;
  std::uint64_t zero = 0;
  for (const auto& [name, value] : facts.counters) {
    const bool bytes =
        name.ends_with("_bytes") && (name.starts_with("rx_prio") || name.starts_with("tx_prio"));
    if (bytes) (name[7] == '0' ? zero : other) += value;
  }
  if (zero == 0 || other > zero / 100) return;
  checks.push_back(
      {"roce-priority-not-mapped", State::problem, Severity::warning,
       fmt::format("Nearly all traffic is in priority 0 ({} bytes): no DSCP is mapped to another "
                   "priority, so PFC and ECN never apply.",
                   zero),
       "Set a traffic class for RDMA (cma_roce_tos, NCCL_IB_TC) and map its DSCP to the lossless "
       "priority on NICs and switches."});
}

void losses(const Facts& facts, Checks& checks) {
  const std::uint64_t timeouts = counter(facts, "local_ack_timeout_err");
  const std::uint64_t sequence =
      counter(facts, "out_of_sequence") + counter(facts, "packet_seq_err");
  constexpr std::uint64_t some_timeouts = 100;  // starting and stopping programs causes a handful
  constexpr std::uint64_t some_sequence = 1000;
  if (timeouts >= some_timeouts || sequence >= some_sequence)
    checks.push_back({"packets-lost", State::problem, Severity::error,
                      fmt::format("The NIC's counters show lost packets: local_ack_timeout_err "
                                  "{}, out_of_sequence and packet_seq_err {}.",
                                  timeouts, sequence),
                      "Find where they are lost (discard counters of NICs and switches), set up "
                      "PFC and ECN for the RDMA traffic, and check cables and adaptive routing."});
  else if (facts.counters.contains("local_ack_timeout_err") ||
           facts.counters.contains("out_of_sequence"))
    checks.push_back({"few-packets-lost", State::fine, Severity::note,
                      "The NIC's counters show no significant losses.", ""});
  if (says(facts, "retry count exceeded"))
    checks.push_back(
        {"retries-ran-out", State::problem, Severity::error,
         "A queue pair gave up: the other side did not acknowledge, as happens when packets are "
         "lost and the NIC resends slowly (ConnectX-4 and older have no recovery for lossy "
         "networks).",
         "Set up PFC and ECN, or use NICs with selective repeat (ConnectX-5 and newer); raise the "
         "timeout (NCCL_IB_TIMEOUT, UCX_RC_TIMEOUT) where the round trip is long."});
}

/// The local ACK timeout is 4.096 us times two to the power of its exponent (InfiniBand
/// Architecture Specification, volume 1).
void timeout(const Facts& facts, Checks& checks) {
  if (!facts.round_trip) return;
  const auto set = facts.settings.find("NCCL_IB_TIMEOUT");
  const int exponent = set != facts.settings.end() ? text::whole_int(set->second).value_or(20) : 20;
  if (exponent < 1 || exponent > 31) return;
  const double timeout = 4.096e-6 * std::exp2(exponent);
  const int needed = std::clamp(
      static_cast<int>(std::ceil(std::log2(facts.round_trip->seconds * 4 / 4.096e-6))), 1, 31);
  if (timeout < facts.round_trip->seconds)
    checks.push_back(
        {"ack-timeout-below-round-trip", State::problem, Severity::error,
         fmt::format(
             "The ACK timeout with exponent {} is {:.1f} ms, below the round trip of {:.1f} ms: "
             "every message is sent again before its acknowledgement can arrive.",
             exponent, timeout * 1e3, facts.round_trip->seconds * 1e3),
         fmt::format("Set NCCL_IB_TIMEOUT to {} or more (the timeout is 4.096 us times 2 to its "
                     "power), and disable the NIC's adaptive retransmission.",
                     needed)});
  else
    checks.push_back(
        {"ack-timeout", State::fine, Severity::note,
         fmt::format("The ACK timeout of {:.1f} ms is above the round trip of {:.1f} ms.",
                     timeout * 1e3, facts.round_trip->seconds * 1e3),
         ""});
  if (facts.round_trip->seconds > 5e-3)
    checks.push_back(
        {"adaptive-retransmission", State::unknown, Severity::note,
         "With a round trip of more than 5 ms, a NIC with adaptive retransmission resends earlier "
         "than the timeout says.",
         "If the counters show resending about every 10 ms, disable it (mlxreg, register "
         "ROCE_ACCEL, field roce_adp_retrans_en); gdr emulate --delay reproduces the delay."});
}

}  // namespace

void roce_checks(const Facts& facts, Checks& checks) {
  flow_control(facts, checks);
  priorities(facts, checks);
  losses(facts, checks);
  timeout(facts, checks);
}

}  // namespace gdr::doctor
