#pragma once

#include <cstdint>
#include <string>

/// A campaign of faults between two guests: the seed decides what a run does, and what the fabric
/// does meanwhile.
namespace gdr::transport {

/// For `gdr emulate in NAME --fault`.
std::string faults_of(std::uint64_t seed);

/// Host 0, over guest_world. Prints a line; 0: right bytes or a named error in time, and nothing is
/// left. Ends by SIGALRM when it hangs.
int run_campaign(std::uint64_t seed);
/// The other host.
int serve_campaign(std::uint64_t seed);

}  // namespace gdr::transport
