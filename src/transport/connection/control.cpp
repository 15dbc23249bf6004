#include "src/transport/connection/control.hpp"

#include <algorithm>

namespace gdr::transport {

void Control::add_done(std::uint64_t operation, const Status& status, std::uint64_t extra) {
  Frame frame;
  frame.type = FrameType::done;
  frame.operation = operation;
  frame.value = static_cast<std::uint64_t>(status.cause());
  frame.extra = extra;
  add(frame, put_text(status.text()));
}

bool Control::send() {
  bool any = false;
  std::vector<std::size_t> blocked;
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const bool stopped = std::find(blocked.begin(), blocked.end(), next->lane) != blocked.end();
    Lane& lane = lanes_.at(next->lane);
    const auto room = stopped ? std::nullopt : lane.acquire(true);
    if (!room) {
      if (!stopped) blocked.push_back(next->lane);
      ++next;
      continue;
    }
    std::copy(next->payload.begin(), next->payload.end(), room->payload.begin());
    next->frame.payload = static_cast<std::uint32_t>(next->payload.size());
    lane.send(room->slot, next->frame);
    next = waiting_.erase(next);
    any = true;
  }
  return any;
}

}  // namespace gdr::transport
