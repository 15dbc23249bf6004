#pragma once

#include <string>
#include <vector>

#include "src/doctor/facts.hpp"

namespace gdr::doctor {

enum class State { fine, unknown, problem };
/// "fine", "unknown", "problem"
std::string_view to_string(State state);

/// One line of the checklist. Severity of a problem: error means that GPUDirect RDMA or RDMA does
/// not work, warning that it is slow or may break, note that it is worth knowing.
struct Check {
  std::string rule;
  State state = State::unknown;
  Severity severity = Severity::note;
  std::string evidence;    ///< one sentence: what was seen, or what is unknown
  std::string remedy;      ///< one sentence; empty when fine
  std::string where = {};  ///< devices or ports, for a finding of the verdict
};
using Checks = std::vector<Check>;

// Each family checks the facts and adds its lines, but none for what does not concern the host.
void software_checks(const Facts& facts,
                     Checks& checks);  ///< peermem, dma-buf, kernel, CUDA, module symbols
void device_checks(const Facts& facts,
                   Checks& checks);  ///< HCAs, link layer, GPU class, IOMMU messages
void gid_checks(const Facts& facts, Checks& checks);      ///< GID tables, namespaces
void roce_checks(const Facts& facts, Checks& checks);     ///< PFC, ECN, losses, timeouts
void limit_checks(const Facts& facts, Checks& checks);    ///< locked memory, write ordering
void rxe_checks(const Facts& facts, Checks& checks);      ///< SoftRoCE for emulation
void storage_checks(const Facts& facts, Checks& checks);  ///< GPUDirect Storage

/// Runs all families and sorts the result.
Checks all_checks(const Facts& facts);
/// Puts problems first, errors before warnings; then what is unknown; then what is fine.
void sort_checks(Checks& checks);

}  // namespace gdr::doctor
