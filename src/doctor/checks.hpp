#pragma once

#include <string>
#include <vector>

#include "src/doctor/facts.hpp"

namespace gdr::doctor {

enum class State { fine, unknown, problem };
/// "fine", "unknown", "problem"
std::string_view to_string(State state);

/// One line of the checklist. A problem's severity: error (GPUDirect RDMA or RDMA does not work),
/// warning (it is slow or may break), note (worth knowing).
struct Check {
  std::string rule;
  State state = State::unknown;
  Severity severity = Severity::note;
  std::string evidence;    ///< one sentence: what was seen, or what was not said
  std::string remedy;      ///< one sentence; empty when fine
  std::string where = {};  ///< of a finding of the verdict: the devices or ports
};
using Checks = std::vector<Check>;

// Each family looks at the facts and adds its lines; no line for what does not concern the host.
void software_checks(const Facts& facts,
                     Checks& checks);  ///< peermem, dma-buf, kernel, CUDA, module symbols
void device_checks(const Facts& facts,
                   Checks& checks);  ///< HCAs, link layer, GPU class, IOMMU messages
void gid_checks(const Facts& facts, Checks& checks);      ///< GID tables, namespaces
void roce_checks(const Facts& facts, Checks& checks);     ///< PFC, ECN, losses, timeouts
void limit_checks(const Facts& facts, Checks& checks);    ///< locked memory, write ordering
void rxe_checks(const Facts& facts, Checks& checks);      ///< SoftRoCE for emulation
void storage_checks(const Facts& facts, Checks& checks);  ///< GPUDirect Storage

/// All of them, sorted.
Checks all_checks(const Facts& facts);
/// Problems first, errors before warnings; then what is not known; then what is fine.
void sort_checks(Checks& checks);

}  // namespace gdr::doctor
