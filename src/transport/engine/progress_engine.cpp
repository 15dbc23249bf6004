#include "src/transport/engine/progress_engine.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "src/common/error.hpp"
#include "src/transport/lanes/frame.hpp"

namespace gdr::transport {
namespace {

void check_options(const TransportOptions& options) {
  const auto need = [](bool holds, const std::string& text) {
    if (!holds) throw InputError(text);
  };
  need(options.retries <= 6,
       fmt::format("retries: {}; they are 0 to 6, since 7 means for ever", options.retries));
  need(options.timeout >= 1 && options.timeout <= 24,
       fmt::format("timeout: {}; it is 1 to 24 (4.096 us times 2 to its power)", options.timeout));
  need(options.queue_pairs >= 1 && options.queue_pairs <= max_lanes,
       fmt::format("queue pairs: {}; they are 1 to {}", options.queue_pairs, max_lanes));
  need(options.chunk.count >= 256 && options.chunk.count <= (16U << 20U),
       fmt::format("chunk: {}; it is 256B to 16MiB", to_string(options.chunk)));
  need(options.depth >= 2 && options.depth <= 4096,
       fmt::format("depth: {}; it is 2 to 4096 bounce buffers", options.depth));
  need(options.largest_message.count >= 1, "largest message: it is 1B or more");
  need(options.limit.seconds > 0 && options.setup_limit.seconds > 0, "limits are more than 0");
}

}  // namespace

ProgressEngine::ProgressEngine(std::shared_ptr<Verbs> chosen_verbs,
                               std::shared_ptr<memory::DeviceMemory> chosen_memory,
                               const TransportOptions& chosen)
    : verbs(std::move(chosen_verbs)),
      memory(std::move(chosen_memory)),
      options(chosen),
      flushes(memory->needs_flush()),
      hears_every_free(memory->hears_every_free()) {
  check_options(options);
  open_nics();
  std::vector<Device*> devices;
  for (const Nic& nic : nics) devices.push_back(nic.device.get());
  registrations = std::make_unique<RegistrationCache>(std::move(devices), *memory);
  find_facts();
  choice = choose_own(facts);
  if (!choice.status.ok()) throw PathUnavailable(choice.status);
  listener_ = memory->on_free([this](const memory::PointerInfo& info) { freed(info); });
}

ProgressEngine::~ProgressEngine() { memory->forget_listener(listener_); }

void ProgressEngine::log(const std::string& line) const {
  if (options.log) return options.log(line);
  std::fprintf(stderr, "gdr: %s\n", line.c_str());
}

void ProgressEngine::open_nics() {
  if (options.path == TransportPath::tcp) return;
  std::string reasons;
  if (!options.nics.empty()) {
    for (const NicChoice& nic : options.nics) add_nic(nic, true, reasons);
  } else {
    for (const std::string& name : verbs->device_names())
      add_nic({name, options.gid_index, {}}, options.gid_index.has_value(), reasons);
  }
  keep_nearest();
  if (nics.empty() && !reasons.empty()) log("no NIC is used: " + reasons);
}

/// A NIC that was named must be usable; one that was only found is otherwise left out, with the
/// reason.
void ProgressEngine::add_nic(const NicChoice& wanted, bool named, std::string& reasons) {
  const auto leave_out = [&](const std::string& why) {
    if (named) throw InputError(why);
    reasons += (reasons.empty() ? "" : "; ") + why;
  };
  auto device = verbs->open(wanted.name);
  if (!device.ok()) return leave_out(device.status().text());
  Nic nic;
  nic.name = wanted.name;
  nic.device = std::move(device.value());
  nic.port = nic.device->port();
  if (!nic.port.active) return leave_out(fmt::format("{}: its port is down", nic.name));
  const auto gid = select_gid(nic.name, nic.device->gids(), nic.port.ethernet,
                              wanted.gid_index ? wanted.gid_index : options.gid_index);
  if (!gid.ok()) return leave_out(gid.status().text());
  nic.gid = gid.value();
  nic.distance = wanted.distance ? *wanted.distance
                                 : distance_of(read_place(memory->sysfs_device()),
                                               read_place(nic.device->sysfs_device()));
  nics.push_back(std::move(nic));
}

void ProgressEngine::keep_nearest() {
  if (nics.empty()) return;
  const auto nearest = std::min_element(nics.begin(), nics.end(), [](const Nic& a, const Nic& b) {
                         return a.distance < b.distance;
                       })->distance;
  std::erase_if(nics, [&](const Nic& nic) { return nic.distance > nearest; });
}

/// Registers and releases a trial allocation; the result decides.
void ProgressEngine::find_facts() {
  facts.memory = memory->name();
  facts.wanted = options.path;
  facts.level = options.level;
  facts.has_nic = !nics.empty();
  for (const Nic& nic : nics) facts.nics += (facts.nics.empty() ? "" : ",") + nic.name;
  if (nics.empty()) {
    facts.nics = "none";
    return;
  }
  facts.distance = nics.front().distance;
  const auto trial = memory->allocate(memory->granularity());
  if (!trial.ok()) {
    facts.registration = trial.status().text();
    return;
  }
  facts.registers = true;
  for (const Nic& nic : nics) {
    const auto registration =
        register_range(*nic.device, *memory, trial.value(), memory->granularity());
    facts.registers = facts.registers && registration.ok();
    if (registration.ok() && facts.registers) facts.registration = registration.value().method;
    if (!registration.ok()) facts.registration = registration.status().text();
  }
  (void)memory->free(trial.value());
}

bool ProgressEngine::poll_devices() {
  bool any = false;
  for (Nic& nic : nics) {
    while (const auto event = nic.device->next_event()) {
      any = true;
      if (*event == DeviceEvent::port_down) nic.port_down = true;
      if (*event == DeviceEvent::port_up) nic.port_down = false;
      if (*event == DeviceEvent::port_down || *event == DeviceEvent::port_up)
        log(fmt::format("{}: its port is {}", nic.name, nic.port_down ? "down" : "up again"));
    }
  }
  return any;
}

bool ProgressEngine::progress(unsigned rounds) {
  const bool thorough = rounds_++ % rounds == 0;
  bool any = thorough && poll_devices();
  for (EngineMember* member : members_) any = member->progress(thorough) || any;
  return any;
}

void ProgressEngine::freed(const memory::PointerInfo& info) {
  const std::lock_guard lock(mutex);
  for (EngineMember* member : members_) member->memory_freed(info);
  registrations->drop(info.allocation);
}

}  // namespace gdr::transport
