#include "tests/transport/guests/resources.hpp"

#include <chrono>
#include <thread>

#include "tests/transport/guests/agent.hpp"
#include "tests/transport/pair.hpp"

namespace gdr::transport {
namespace {
constexpr const char* show = "PATH=$PATH:/sbin:/usr/sbin rdma resource show";
}

std::string resources_here() { return run_here(show); }
std::string resources_there() { return guest_world->run(show); }

std::string resources_after(const std::string& wanted) {
  std::string now = resources_here();
  for (int i = 0; i < 20 && now != wanted; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    now = resources_here();
  }
  return now;
}

}  // namespace gdr::transport
