#include "emu/fabric/switch_core.hpp"

#include <algorithm>
#include <utility>

#include "src/common/check.hpp"

namespace gdr::fabric {

SwitchCore::SwitchCore(const FabricOptions& options) {
  for (const PortOptions& port : options.ports)
    ports_.push_back({port.name,
                      Link(port.name + ".tx", port.tx, options.seed),
                      Link(port.name + ".rx", port.rx, options.seed),
                      {},
                      {},
                      false});
  if (options.armed) armed_at_ = Duration{0};
}

void SwitchCore::arm(Duration now) {
  if (!armed_at_) armed_at_ = now;
}

void SwitchCore::set_faults(const std::vector<PortOptions>& ports, Seed seed, Duration now) {
  check(ports.size() == ports_.size(), "set_faults() needs all ports");
  const auto replace = [&](Link& link, const std::string& name, const LinkOptions& options) {
    const DirectionCounters counters = link.counters();
    link = Link(name, options, seed);
    link.counters() = counters;
  };
  for (std::size_t i = 0; i < ports_.size(); ++i) {
    replace(ports_[i].tx, ports_[i].name + ".tx", ports[i].tx);
    replace(ports_[i].rx, ports_[i].name + ".rx", ports[i].rx);
  }
  armed_at_ = now;
}

void SwitchCore::connect(std::size_t port) { ports_.at(port).connected = true; }

void SwitchCore::disconnect(std::size_t port) {
  ports_.at(port).connected = false;
  std::erase_if(addresses_, [&](const auto& entry) { return entry.second == port; });
}

bool SwitchCore::later(const Event& a, const Event& b) {
  return a.due != b.due ? a.due > b.due : a.order > b.order;
}

void SwitchCore::through(std::size_t port, bool to_nic, const Parcel& parcel, Duration now) {
  Link& link = to_nic ? ports_.at(port).rx : ports_.at(port).tx;
  const auto push = [&](FramePtr frame, Duration due) {
    events_.push_back({due, order_++, port, to_nic, {std::move(frame), parcel.hold}});
    std::push_heap(events_.begin(), events_.end(), later);
  };
  if (!armed_at_) {
    link.counters().arrived.add({parcel.frame->size()});
    push(parcel.frame, now);
    return;
  }
  for (Delivery& delivery : link.pass(parcel.frame, now - *armed_at_))
    push(std::move(delivery.frame), std::max(now, delivery.due + *armed_at_));
}

void SwitchCore::receive(std::size_t port, const Parcel& parcel, Duration now) {
  Port& from = ports_.at(port);
  check(parcel.frame != nullptr, "the parcel has no frame");
  if (parcel.frame->size() < ethernet_header_bytes) {
    from.tx.counters().arrived.add({parcel.frame->size()});
    ++from.tx.counters().dropped.runt;
    return;
  }
  from.roce.count(*parcel.frame);
  from.tcp.count(*parcel.frame);
  through(port, false, parcel, now);
}

void SwitchCore::forward(std::size_t port, const Parcel& parcel, Duration now) {
  DirectionCounters& counters = ports_.at(port).tx.counters();
  const MacAddress source = source_of(*parcel.frame);
  const MacAddress destination = destination_of(*parcel.frame);
  // Do not learn addresses from frames of a NIC that has disconnected.
  if (!is_multicast(source) && ports_.at(port).connected) {
    if (const auto known = addresses_.find(source); known != addresses_.end()) known->second = port;
    else if (addresses_.size() < max_addresses) addresses_.emplace(source, port);
  }
  const auto known = addresses_.find(destination);
  const bool flood = is_multicast(destination) || known == addresses_.end();
  if (is_link_local(destination) || (!flood && known->second == port)) {
    ++counters.dropped.filtered;
    return;
  }
  counters.passed.add({parcel.frame->size()});
  if (!flood) through(known->second, true, parcel, now);
  for (std::size_t to = 0; flood && to < ports_.size(); ++to)
    if (to != port && ports_[to].connected) through(to, true, parcel, now);
}

void SwitchCore::not_delivered(std::size_t port, Bytes frame, std::uint64_t Drops::*cause) {
  DirectionCounters& counters = ports_.at(port).rx.counters();
  --counters.passed.frames;
  counters.passed.bytes.count -= frame.count;
  ++(counters.dropped.*cause);
}

void SwitchCore::hand_over(const Event& event, const Output& output) {
  Port& port = ports_.at(event.port);
  DirectionCounters& counters = port.rx.counters();
  if (!port.connected) ++counters.dropped.unconnected;
  else if (output(event.port, event.parcel)) counters.passed.add({event.parcel.frame->size()});
  else ++counters.dropped.stalled;
}

std::optional<Duration> SwitchCore::next_due() const {
  if (events_.empty()) return std::nullopt;
  return events_.front().due;
}

void SwitchCore::advance(Duration now, const Output& output) {
  while (!events_.empty() && events_.front().due <= now) {
    std::pop_heap(events_.begin(), events_.end(), later);
    const Event event = std::move(events_.back());
    events_.pop_back();
    if (event.to_nic) hand_over(event, output);
    else forward(event.port, event.parcel, event.due);
  }
}

PortCounters SwitchCore::counters(std::size_t port) const {
  const Port& of = ports_.at(port);
  PortCounters counters;
  counters.name = of.name;
  counters.connected = of.connected;
  counters.tx = of.tx.counters();
  counters.rx = of.rx.counters();
  counters.roce = of.roce.flows();
  counters.roce_left_out = of.roce.left_out();
  counters.tcp = of.tcp.flows();
  counters.tcp_left_out = of.tcp.left_out();
  return counters;
}

}  // namespace gdr::fabric
