#include <fcntl.h>
#include <fmt/format.h>
#include <infiniband/verbs.h>
#include <poll.h>
#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

#include "src/common/file.hpp"
#include "src/transport/verbs/verbs.hpp"

namespace gdr::transport {
namespace {

constexpr std::uint8_t port_number = 1;
constexpr int all_access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
                           IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;

Status failed(const std::string& device, const std::string& what, int error,
              Cause cause = Cause::device_failed) {
  return {cause, fmt::format("{}: {}: {} (errno {})", device, what, std::strerror(error), error)};
}

CompletionStatus outcome_of(ibv_wc_status status) {
  switch (status) {
    case IBV_WC_SUCCESS:
      return CompletionStatus::ok;
    case IBV_WC_WR_FLUSH_ERR:
      return CompletionStatus::flushed;
    case IBV_WC_LOC_LEN_ERR:
      return CompletionStatus::local_length;
    case IBV_WC_LOC_PROT_ERR:
      return CompletionStatus::local_protection;
    case IBV_WC_LOC_QP_OP_ERR:
      return CompletionStatus::local_operation;
    case IBV_WC_REM_ACCESS_ERR:
      return CompletionStatus::remote_access;
    case IBV_WC_REM_INV_REQ_ERR:
      return CompletionStatus::remote_invalid;
    case IBV_WC_REM_OP_ERR:
      return CompletionStatus::remote_operation;
    case IBV_WC_RETRY_EXC_ERR:
      return CompletionStatus::retry_exceeded;
    case IBV_WC_RNR_RETRY_EXC_ERR:
      return CompletionStatus::rnr_exceeded;
    default:
      return CompletionStatus::other;
  }
}

ibv_mtu mtu_of(Bytes mtu) {
  return mtu.count >= 4096   ? IBV_MTU_4096
         : mtu.count >= 2048 ? IBV_MTU_2048
         : mtu.count >= 1024 ? IBV_MTU_1024
         : mtu.count >= 512  ? IBV_MTU_512
                             : IBV_MTU_256;
}

class IbvRegion final : public MemoryRegion {
 public:
  explicit IbvRegion(ibv_mr* region) : region_(region) {}
  ~IbvRegion() override { ibv_dereg_mr(region_); }
  IbvRegion(const IbvRegion&) = delete;
  IbvRegion& operator=(const IbvRegion&) = delete;
  [[nodiscard]] std::uint32_t local_key() const override { return region_->lkey; }
  [[nodiscard]] std::uint32_t remote_key() const override { return region_->rkey; }

 private:
  ibv_mr* region_;
};

class IbvCompletionQueue final : public CompletionQueue {
 public:
  explicit IbvCompletionQueue(ibv_cq* queue) : queue_(queue) {}
  ~IbvCompletionQueue() override { ibv_destroy_cq(queue_); }
  IbvCompletionQueue(const IbvCompletionQueue&) = delete;
  IbvCompletionQueue& operator=(const IbvCompletionQueue&) = delete;
  [[nodiscard]] ibv_cq* handle() const { return queue_; }

  std::size_t poll(std::span<Completion> completions) override {
    std::array<ibv_wc, 16> found;
    const int wanted = static_cast<int>(std::min(found.size(), completions.size()));
    const int count = ibv_poll_cq(queue_, wanted, found.data());
    for (int i = 0; i < count; ++i) {
      const ibv_wc& wc = found[static_cast<std::size_t>(i)];
      Completion& completion = completions[static_cast<std::size_t>(i)];
      completion = Completion{wc.wr_id, outcome_of(wc.status), false, false, 0, {}};
      if (wc.status != IBV_WC_SUCCESS) continue;  // the other fields are invalid then
      completion.received = (wc.opcode & IBV_WC_RECV) != 0;
      completion.has_immediate = (wc.wc_flags & IBV_WC_WITH_IMM) != 0;
      completion.immediate = completion.has_immediate ? be32toh(wc.imm_data) : 0;
      completion.size = Bytes{wc.byte_len};
    }
    return static_cast<std::size_t>(std::max(count, 0));
  }

 private:
  ibv_cq* queue_;
};

class IbvQueuePair final : public QueuePair {
 public:
  IbvQueuePair(ibv_qp* pair, std::string device, bool ethernet)
      : pair_(pair), device_(std::move(device)), ethernet_(ethernet) {}
  ~IbvQueuePair() override { ibv_destroy_qp(pair_); }
  IbvQueuePair(const IbvQueuePair&) = delete;
  IbvQueuePair& operator=(const IbvQueuePair&) = delete;

  [[nodiscard]] std::uint32_t number() const override { return pair_->qp_num; }

  Status initialize() {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_INIT;
    attr.port_num = port_number;
    attr.qp_access_flags = static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
                                                 IBV_ACCESS_REMOTE_ATOMIC);
    return modify(attr, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS,
                  "a new queue pair");
  }

  Status connect(const QueuePairRoute& route) override {
    if (route.retries > 6 || route.receiver_not_ready_retries > 6)
      return {Cause::invalid, fmt::format("{}: retries are 0 to 6: 7 means for ever", device_)};
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_RTR;
    attr.path_mtu = mtu_of(route.mtu);
    attr.dest_qp_num = route.peer_queue_pair;
    attr.rq_psn = route.peer_psn & 0xffffffU;
    attr.max_dest_rd_atomic = static_cast<std::uint8_t>(route.reads_in_flight);
    attr.min_rnr_timer = 12;  // 0.64 ms
    attr.ah_attr.dlid = route.peer_lid;
    attr.ah_attr.port_num = port_number;
    attr.ah_attr.is_global = ethernet_ || route.peer_lid == 0 ? 1 : 0;
    std::memcpy(attr.ah_attr.grh.dgid.raw, route.peer_gid.data(), route.peer_gid.size());
    attr.ah_attr.grh.sgid_index = static_cast<std::uint8_t>(route.gid_index);
    attr.ah_attr.grh.hop_limit = 64;
    Status status =
        modify(attr,
               IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                   IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER,
               fmt::format("a queue pair to its peer by GID index {}", route.gid_index));
    if (!status.ok()) return status;
    attr = {};
    attr.qp_state = IBV_QPS_RTS;
    attr.sq_psn = route.own_psn & 0xffffffU;
    attr.timeout = static_cast<std::uint8_t>(route.timeout);
    attr.retry_cnt = static_cast<std::uint8_t>(route.retries);
    attr.rnr_retry = static_cast<std::uint8_t>(route.receiver_not_ready_retries);
    attr.max_rd_atomic = static_cast<std::uint8_t>(route.reads_in_flight);
    return modify(attr,
                  IBV_QP_STATE | IBV_QP_SQ_PSN | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                      IBV_QP_RNR_RETRY | IBV_QP_MAX_QP_RD_ATOMIC,
                  "a queue pair to sending");
  }

  PostResult post(const SendWork& work) override {
    ibv_sge part = {work.local_address, static_cast<std::uint32_t>(work.size.count),
                    work.local_key};
    ibv_send_wr request = {};
    request.wr_id = work.id;
    request.sg_list = &part;
    request.num_sge = work.size.count > 0 ? 1 : 0;
    request.send_flags = IBV_SEND_SIGNALED;
    if (work.opcode == Opcode::fetch_add || work.opcode == Opcode::compare_swap) {
      request.opcode = work.opcode == Opcode::fetch_add ? IBV_WR_ATOMIC_FETCH_AND_ADD
                                                        : IBV_WR_ATOMIC_CMP_AND_SWP;
      request.wr.atomic = {work.remote_address, work.operand, work.swap, work.remote_key};
    } else {
      request.opcode = work.opcode == Opcode::write  ? IBV_WR_RDMA_WRITE
                       : work.opcode == Opcode::read ? IBV_WR_RDMA_READ
                       : work.opcode == Opcode::send ? IBV_WR_SEND
                                                     : IBV_WR_RDMA_WRITE_WITH_IMM;
      request.imm_data = htobe32(work.immediate);
      request.wr.rdma = {work.remote_address, work.remote_key};
    }
    ibv_send_wr* bad = nullptr;
    return result_of(ibv_post_send(pair_, &request, &bad));
  }

  PostResult post(const ReceiveWork& work) override {
    ibv_sge part = {work.address, static_cast<std::uint32_t>(work.size.count), work.key};
    ibv_recv_wr request = {};
    request.wr_id = work.id;
    request.sg_list = &part;
    request.num_sge = work.size.count > 0 ? 1 : 0;
    ibv_recv_wr* bad = nullptr;
    return result_of(ibv_post_recv(pair_, &request, &bad));
  }

  void fail() override {
    ibv_qp_attr attr = {};
    attr.qp_state = IBV_QPS_ERR;
    ibv_modify_qp(pair_, &attr, IBV_QP_STATE);
  }

 private:
  static PostResult result_of(int error) {
    return error == 0        ? PostResult::posted
           : error == ENOMEM ? PostResult::full
                             : PostResult::refused;
  }
  Status modify(ibv_qp_attr& attr, int mask, const std::string& what) {
    const int error = ibv_modify_qp(pair_, &attr, mask);
    return error == 0 ? Status() : failed(device_, what, error);
  }

  ibv_qp* pair_;
  std::string device_;
  bool ethernet_;
};

class IbvDevice final : public Device {
 public:
  IbvDevice(ibv_context* context, ibv_pd* domain) : context_(context), domain_(domain) {
    fcntl(context->async_fd, F_SETFL, fcntl(context->async_fd, F_GETFL) | O_NONBLOCK);
  }
  ~IbvDevice() override {
    ibv_dealloc_pd(domain_);
    ibv_close_device(context_);
  }
  IbvDevice(const IbvDevice&) = delete;
  IbvDevice& operator=(const IbvDevice&) = delete;

  [[nodiscard]] std::string name() const override { return ibv_get_device_name(context_->device); }

  /// rdma_rxe itself is not a PCI device, but its interface is.
  [[nodiscard]] std::string sysfs_device() const override {
    const std::string own = "/sys/class/infiniband/" + name();
    std::error_code error;
    std::filesystem::path place = std::filesystem::canonical(own + "/device", error);
    if (error) {
      try {
        std::string interface = read_file(own + "/parent");
        while (!interface.empty() && interface.back() <= ' ') interface.pop_back();
        place = std::filesystem::canonical("/sys/class/net/" + interface + "/device", error);
      } catch (const std::exception&) {
        return "";
      }
    }
    if (error) return "";
    // A virtio interface is a child of its PCI function.
    return place.filename().string().starts_with("virtio") ? place.parent_path().string()
                                                           : place.string();
  }

  [[nodiscard]] DeviceLimits limits() const override {
    ibv_device_attr attr = {};
    if (ibv_query_device(context_, &attr) != 0) return {};
    const int reads = std::min(attr.max_qp_rd_atom, attr.max_qp_init_rd_atom);
    return {static_cast<unsigned>(attr.max_qp_wr), static_cast<unsigned>(std::clamp(reads, 1, 16)),
            static_cast<unsigned>(attr.max_cqe)};
  }

  [[nodiscard]] PortState port() const override {
    ibv_port_attr attr = {};
    if (ibv_query_port(context_, port_number, &attr) != 0) return {};
    return {attr.state == IBV_PORT_ACTIVE, attr.link_layer == IBV_LINK_LAYER_ETHERNET, attr.lid,
            Bytes{std::uint64_t{128} << attr.active_mtu}, Bytes{attr.max_msg_sz}};
  }

  [[nodiscard]] std::vector<GidEntry> gids() const override {
    std::array<ibv_gid_entry, 256> found;
    const ssize_t count = ibv_query_gid_table(context_, found.data(), found.size(), 0);
    std::vector<GidEntry> entries;
    for (ssize_t i = 0; i < count; ++i) {
      const ibv_gid_entry& from = found[static_cast<std::size_t>(i)];
      if (from.port_num != port_number) continue;
      GidEntry entry;
      entry.index = from.gid_index;
      std::memcpy(entry.gid.data(), from.gid.raw, entry.gid.size());
      entry.type = from.gid_type == IBV_GID_TYPE_ROCE_V2   ? GidType::rocev2
                   : from.gid_type == IBV_GID_TYPE_ROCE_V1 ? GidType::rocev1
                                                           : GidType::infiniband;
      entries.push_back(entry);
    }
    return entries;
  }

  Result<std::unique_ptr<MemoryRegion>> register_memory(std::uint64_t address, Bytes size,
                                                        std::uint64_t iova) override {
    ibv_mr* region = ibv_reg_mr_iova2(domain_, reinterpret_cast<void*>(address), size.count, iova,
                                      static_cast<unsigned>(all_access));
    if (region == nullptr)
      return failed(name(), fmt::format("ibv_reg_mr of {}", to_string(size)), errno,
                    Cause::registration_refused);
    return std::unique_ptr<MemoryRegion>(new IbvRegion(region));
  }

  Result<std::unique_ptr<MemoryRegion>> register_dma_buf(int fd, Bytes offset, Bytes size,
                                                         std::uint64_t iova) override {
    ibv_mr* region = ibv_reg_dmabuf_mr(domain_, offset.count, size.count, iova, fd, all_access);
    if (region == nullptr)
      return failed(name(), fmt::format("ibv_reg_dmabuf_mr of {}", to_string(size)), errno,
                    Cause::registration_refused);
    return std::unique_ptr<MemoryRegion>(new IbvRegion(region));
  }

  Result<std::unique_ptr<CompletionQueue>> create_completion_queue(unsigned depth) override {
    ibv_cq* queue = ibv_create_cq(context_, static_cast<int>(depth), nullptr, nullptr, 0);
    if (queue == nullptr)
      return failed(name(), fmt::format("a completion queue of {}", depth), errno);
    return std::unique_ptr<CompletionQueue>(new IbvCompletionQueue(queue));
  }

  Result<std::unique_ptr<QueuePair>> create_queue_pair(CompletionQueue& queue,
                                                       QueuePairSizes sizes) override {
    ibv_qp_init_attr attr = {};
    attr.send_cq = attr.recv_cq = static_cast<IbvCompletionQueue&>(queue).handle();
    attr.cap = {sizes.sends, sizes.receives, 1, 1, 0};
    attr.qp_type = IBV_QPT_RC;
    ibv_qp* pair = ibv_create_qp(domain_, &attr);
    if (pair == nullptr) return failed(name(), "a new queue pair", errno);
    auto made = std::make_unique<IbvQueuePair>(pair, name(), port().ethernet);
    if (Status status = made->initialize(); !status.ok()) return status;
    return std::unique_ptr<QueuePair>(std::move(made));
  }

  std::optional<DeviceEvent> next_event() override {
    ibv_async_event event = {};
    if (ibv_get_async_event(context_, &event) != 0) return std::nullopt;
    ibv_ack_async_event(&event);
    switch (event.event_type) {
      case IBV_EVENT_PORT_ERR:
        return DeviceEvent::port_down;
      case IBV_EVENT_PORT_ACTIVE:
        return DeviceEvent::port_up;
      case IBV_EVENT_DEVICE_FATAL:
        return DeviceEvent::device_failed;
      case IBV_EVENT_GID_CHANGE:
        return DeviceEvent::gids_changed;
      default:
        return DeviceEvent::queue_pair_failed;
    }
  }

 private:
  ibv_context* context_;
  ibv_pd* domain_;
};

class IbVerbs final : public Verbs {
 public:
  [[nodiscard]] std::vector<std::string> device_names() const override {
    std::vector<std::string> names;
    visit([&](ibv_device* device) { names.emplace_back(ibv_get_device_name(device)); });
    return names;
  }

  Result<std::unique_ptr<Device>> open(const std::string& name) override {
    ibv_context* context = nullptr;
    visit([&](ibv_device* device) {
      if (name == ibv_get_device_name(device)) context = ibv_open_device(device);
    });
    if (context == nullptr)
      return Status(Cause::invalid,
                    fmt::format("there is no RDMA device {}, or it cannot be opened", name));
    ibv_pd* domain = ibv_alloc_pd(context);
    if (domain == nullptr) {
      const int error = errno;
      ibv_close_device(context);
      return failed(name, "a protection domain", error);
    }
    return std::unique_ptr<Device>(new IbvDevice(context, domain));
  }

  [[nodiscard]] Duration now() const override {
    return {
        std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count()};
  }
  /// A system call costs more than a message of a real NIC takes, so the first rounds make none. A
  /// longer wait yields: on a machine with one core it would block what it waits for, the kernel
  /// thread that does rdma_rxe's work.
  void idle(unsigned rounds) override {
    if (rounds > rounds_alone) sched_yield();
  }

 private:
  static constexpr unsigned rounds_alone = 16;  // about 0.5 us

  template <typename Visitor>
  static void visit(Visitor visitor) {
    int count = 0;
    ibv_device** devices = ibv_get_device_list(&count);
    for (int i = 0; i < count; ++i) visitor(devices[i]);
    if (devices != nullptr) ibv_free_device_list(devices);
  }
};

}  // namespace

std::unique_ptr<Verbs> make_ibverbs() { return std::make_unique<IbVerbs>(); }

}  // namespace gdr::transport
