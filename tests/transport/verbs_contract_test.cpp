// What verbs must do: the double in the process, and rdma_rxe where there is a device (guests of
// gdr emulate).
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "src/transport/verbs/double.hpp"

namespace gdr::transport {
namespace {

struct VerbsUnderTest {
  std::string name;
  std::function<std::unique_ptr<Verbs>()> make;
  std::string skip;
};
std::ostream& operator<<(std::ostream& out, const VerbsUnderTest& verbs) {
  return out << verbs.name;
}

std::vector<VerbsUnderTest> implementations() {
  const bool real = !make_ibverbs()->device_names().empty();
  return {{"double", [] { return make_double(make_double_fabric({}), {"nic0"}); }, ""},
          {"double_with_loss",
           [] {
             DoubleOptions options;
             options.mtu = Bytes{1024};
             options.faults.loss = 0.05;
             options.faults.reorder = 0.05;
             return make_double(make_double_fabric(options), {"nic0"});
           },
           ""},
          {"ibverbs", [] { return make_ibverbs(); },
           real ? "" : "there is no RDMA device: rdma_rxe is in guests of gdr emulate"}};
}

constexpr std::size_t buffer_size = std::size_t{1} << 20U;

/// One end of a connection: registered pages and a queue pair.
struct Side {
  std::vector<std::uint8_t> bytes = std::vector<std::uint8_t>(buffer_size);
  std::unique_ptr<MemoryRegion> region;
  std::unique_ptr<CompletionQueue> queue;
  std::unique_ptr<QueuePair> pair;
  [[nodiscard]] std::uint64_t at(std::size_t offset) const {
    return reinterpret_cast<std::uint64_t>(bytes.data()) + offset;
  }
};

class VerbsContract : public testing::TestWithParam<VerbsUnderTest> {
 protected:
  void SetUp() override {
    if (!GetParam().skip.empty()) GTEST_SKIP() << GetParam().skip;
    verbs_ = GetParam().make();
    device_ = std::move(verbs_->open(verbs_->device_names().front()).value());
    for (const GidEntry& entry : device_->gids())
      if (entry.type == GidType::rocev2 && entry.gid[10] == 0xff) gid_ = entry;
    for (Side* side : {&a_, &b_}) {
      side->region =
          std::move(device_->register_memory(side->at(0), Bytes{buffer_size}, side->at(0)).value());
      side->queue = std::move(device_->create_completion_queue(256).value());
      side->pair = std::move(device_->create_queue_pair(*side->queue, {16, 16}).value());
    }
  }

  void connect(unsigned timeout = 14) {
    ASSERT_TRUE(a_.pair->connect(route_to(b_, 100, 7000, timeout)).ok());
    ASSERT_TRUE(b_.pair->connect(route_to(a_, 7000, 100, timeout)).ok());
  }
  [[nodiscard]] QueuePairRoute route_to(const Side& peer, std::uint32_t own, std::uint32_t theirs,
                                        unsigned timeout) const {
    QueuePairRoute route;
    route.peer_queue_pair = peer.pair->number();
    route.peer_gid = gid_.gid;
    route.gid_index = gid_.index;
    route.own_psn = own;
    route.peer_psn = theirs;
    route.mtu = device_->port().mtu;
    route.timeout = timeout;
    route.reads_in_flight = device_->limits().reads_in_flight;
    return route;
  }

  /// The next completion of a queue; a failure when none comes within 20 s.
  Completion next(Side& side) {
    Completion completion;
    const Duration end = verbs_->now() + Duration{20};
    while (side.queue->poll({&completion, 1}) == 0) {
      if (verbs_->now() > end) {
        ADD_FAILURE() << "no completion within 20 s";
        return completion;
      }
      verbs_->idle(100);
    }
    return completion;
  }
  [[nodiscard]] static SendWork work(Opcode opcode, const Side& from, const Side& to,
                                     std::size_t size, std::size_t local = 0,
                                     std::size_t remote = 0) {
    SendWork work;
    work.id = 5;
    work.opcode = opcode;
    work.local_address = from.at(local);
    work.local_key = from.region->local_key();
    work.size = Bytes{size};
    work.remote_address = to.at(remote);
    work.remote_key = to.region->remote_key();
    return work;
  }
  static ReceiveWork receive(const Side& side, std::size_t size, std::size_t offset = 0) {
    return {9, side.at(offset), side.region->local_key(), Bytes{size}};
  }

  std::unique_ptr<Verbs> verbs_;
  std::unique_ptr<Device> device_;
  GidEntry gid_;
  Side a_;
  Side b_;
};

TEST_P(VerbsContract, AWriteLandsWhereItWasAskedTo) {
  connect();
  std::iota(a_.bytes.begin(), a_.bytes.end(), std::uint8_t{1});
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{1}, std::size_t{4097}, std::size_t{100001}}) {
    ASSERT_EQ(a_.pair->post(work(Opcode::write, a_, b_, size, 3, 1001)), PostResult::posted);
    const Completion done = next(a_);
    EXPECT_EQ(done.status, CompletionStatus::ok) << to_string(done.status);
    EXPECT_EQ(done.id, 5U);
    EXPECT_FALSE(done.received);
    EXPECT_EQ(0, std::memcmp(a_.bytes.data() + 3, b_.bytes.data() + 1001, size)) << size;
    EXPECT_EQ(b_.bytes[1001 + size], 0) << "nothing behind it";
  }
}

TEST_P(VerbsContract, AReadFetches) {
  connect();
  std::iota(b_.bytes.begin(), b_.bytes.end(), std::uint8_t{9});
  for (const std::size_t size : {std::size_t{0}, std::size_t{8}, std::size_t{70003}}) {
    ASSERT_EQ(a_.pair->post(work(Opcode::read, a_, b_, size, 17, 5)), PostResult::posted);
    EXPECT_EQ(next(a_).status, CompletionStatus::ok);
    EXPECT_EQ(0, std::memcmp(a_.bytes.data() + 17, b_.bytes.data() + 5, size)) << size;
    EXPECT_EQ(a_.bytes[17 + size], 0);
  }
}

TEST_P(VerbsContract, ASendFillsTheReceivesInOrder) {
  ASSERT_EQ(b_.pair->post(receive(b_, 100, 0)), PostResult::posted);
  connect();
  ASSERT_EQ(b_.pair->post(receive(b_, 50000, 1000)), PostResult::posted);
  std::fill(a_.bytes.begin(), a_.bytes.end(), std::uint8_t{0x33});
  ASSERT_EQ(a_.pair->post(work(Opcode::send, a_, b_, 40)), PostResult::posted);
  ASSERT_EQ(a_.pair->post(work(Opcode::send, a_, b_, 50000)), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::ok);
  EXPECT_EQ(next(a_).status, CompletionStatus::ok);
  for (const std::size_t size : {std::size_t{40}, std::size_t{50000}}) {
    const Completion got = next(b_);
    EXPECT_TRUE(got.received);
    EXPECT_EQ(got.id, 9U);
    EXPECT_EQ(got.size, Bytes{size});
    EXPECT_FALSE(got.has_immediate);
  }
  EXPECT_EQ(b_.bytes[39], 0x33);
  EXPECT_EQ(b_.bytes[40], 0);
  EXPECT_EQ(b_.bytes[50999], 0x33);
}

TEST_P(VerbsContract, AnImmediateComesWhenTheBytesAreThere) {
  ASSERT_EQ(b_.pair->post(receive(b_, 0)), PostResult::posted);
  connect();
  std::fill(a_.bytes.begin(), a_.bytes.end(), std::uint8_t{0x44});
  SendWork with = work(Opcode::write_with_immediate, a_, b_, 60000, 0, 7);
  with.immediate = 0xdeadbeef;
  ASSERT_EQ(a_.pair->post(with), PostResult::posted);
  const Completion got = next(b_);
  EXPECT_TRUE(got.received && got.has_immediate);
  EXPECT_EQ(got.immediate, 0xdeadbeef);
  EXPECT_EQ(got.size, Bytes{60000});
  EXPECT_EQ(b_.bytes[60006], 0x44);
  EXPECT_EQ(next(a_).status, CompletionStatus::ok);
}

TEST_P(VerbsContract, AtomicsGiveTheOldValue) {
  connect();
  std::uint64_t value = 40;
  std::memcpy(b_.bytes.data() + 64, &value, 8);
  SendWork add = work(Opcode::fetch_add, a_, b_, 8, 0, 64);
  add.operand = 2;
  ASSERT_EQ(a_.pair->post(add), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::ok);
  std::memcpy(&value, a_.bytes.data(), 8);
  EXPECT_EQ(value, 40U);
  for (const std::uint64_t expected : {42U, 99U}) {
    SendWork swap = work(Opcode::compare_swap, a_, b_, 8, 8, 64);
    swap.operand = 42;
    swap.swap = 99;
    ASSERT_EQ(a_.pair->post(swap), PostResult::posted);
    EXPECT_EQ(next(a_).status, CompletionStatus::ok);
    std::memcpy(&value, a_.bytes.data() + 8, 8);
    EXPECT_EQ(value, expected) << "the second time it is no longer 42";
  }
}

TEST_P(VerbsContract, CompletionsComeInTheOrderOfPosting) {
  connect();
  for (std::uint64_t i = 0; i < 12; ++i) {
    SendWork next_work =
        work(i % 3 == 2 ? Opcode::read : Opcode::write, a_, b_, 5000 + i * 100, i * 8000, i * 8000);
    next_work.id = i;
    ASSERT_EQ(a_.pair->post(next_work), PostResult::posted);
  }
  for (std::uint64_t i = 0; i < 12; ++i) EXPECT_EQ(next(a_).id, i);
}

TEST_P(VerbsContract, AFullQueueSaysSo) {
  connect(18);      // 1 s, so that nothing ends while this posts
  b_.pair.reset();  // nothing is acknowledged
  int posted = 0;
  PostResult result = PostResult::posted;
  while (posted < 200 &&
         (result = a_.pair->post(work(Opcode::write, a_, b_, 100))) == PostResult::posted)
    ++posted;
  EXPECT_EQ(result, PostResult::full);
  EXPECT_GE(posted, 16);
  a_.pair->fail();
  for (int i = 0; i < posted; ++i) ASSERT_EQ(next(a_).status, CompletionStatus::flushed);
}

TEST_P(VerbsContract, AWrongKeyIsRefusedAndTheRestFlushed) {
  connect();
  SendWork wrong = work(Opcode::write, a_, b_, 64);
  wrong.remote_key ^= 0x5500;
  ASSERT_EQ(a_.pair->post(wrong), PostResult::posted);
  ASSERT_EQ(a_.pair->post(work(Opcode::write, a_, b_, 64)), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::remote_access);
  EXPECT_EQ(next(a_).status, CompletionStatus::flushed);
}

TEST_P(VerbsContract, ARangeBeyondTheRegionIsRefused) {
  connect();
  ASSERT_EQ(a_.pair->post(work(Opcode::write, a_, b_, 64, 0, buffer_size - 63)),
            PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::remote_access);
}

TEST_P(VerbsContract, AReleasedRegionIsRefused) {
  connect();
  const SendWork late = work(Opcode::write, a_, b_, 64);
  b_.region.reset();
  ASSERT_EQ(a_.pair->post(late), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::remote_access);
}

TEST_P(VerbsContract, ASendThatIsTooLongIsRefused) {
  ASSERT_EQ(b_.pair->post(receive(b_, 10)), PostResult::posted);
  connect();
  ASSERT_EQ(a_.pair->post(work(Opcode::send, a_, b_, 11)), PostResult::posted);
  EXPECT_NE(next(a_).status, CompletionStatus::ok);
  EXPECT_EQ(b_.bytes[0], 0);
}

TEST_P(VerbsContract, WithoutAReceiveASendFails) {
  connect();
  ASSERT_EQ(a_.pair->post(work(Opcode::send, a_, b_, 11)), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::rnr_exceeded);
}

TEST_P(VerbsContract, ASendWaitsForAReceive) {
  connect();
  ASSERT_EQ(a_.pair->post(work(Opcode::send, a_, b_, 11)), PostResult::posted);
  for (int i = 0; i < 3; ++i) verbs_->idle(100);
  ASSERT_EQ(b_.pair->post(receive(b_, 64)), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::ok);
  EXPECT_EQ(next(b_).size, Bytes{11});
}

TEST_P(VerbsContract, AVanishedPeerIsNoticed) {
  connect(10);  // 4.2 ms
  b_.pair.reset();
  ASSERT_EQ(a_.pair->post(work(Opcode::write, a_, b_, 64)), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::retry_exceeded);
}

TEST_P(VerbsContract, AFailedQueuePairFlushesWhatIsPosted) {
  ASSERT_EQ(a_.pair->post(receive(a_, 64)), PostResult::posted);
  connect();
  a_.pair->fail();
  EXPECT_EQ(next(a_).status, CompletionStatus::flushed);
  ASSERT_EQ(a_.pair->post(work(Opcode::write, a_, b_, 64)), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::flushed);
}

TEST_P(VerbsContract, MemoryIsAddressedByItsIova) {
  connect();
  const std::uint64_t iova = 0x123400000000 + b_.at(0) % 4096;
  const auto region = device_->register_memory(b_.at(0), Bytes{5000}, iova);
  ASSERT_TRUE(region.ok()) << region.status().to_string();
  a_.bytes[0] = 0x77;
  SendWork there = work(Opcode::write, a_, b_, 1);
  there.remote_address = iova + 4999;
  there.remote_key = region.value()->remote_key();
  ASSERT_EQ(a_.pair->post(there), PostResult::posted);
  EXPECT_EQ(next(a_).status, CompletionStatus::ok);
  EXPECT_EQ(b_.bytes[4999], 0x77);
}

TEST_P(VerbsContract, MemoryWithoutAccessCannotBeRegistered) {
  void* none = mmap(nullptr, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto address = reinterpret_cast<std::uint64_t>(none);
  const auto region = device_->register_memory(address, Bytes{65536}, address);
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.status().cause(), Cause::registration_refused);
  EXPECT_NE(region.status().text().find("Bad address (errno 14)"), std::string::npos)
      << region.status().text();
  munmap(none, 65536);
}

TEST_P(VerbsContract, ADescriptorThatIsNoneIsRefused) {
  const auto region = device_->register_dma_buf(-1, Bytes{0}, Bytes{65536}, 0);
  ASSERT_FALSE(region.ok());
  EXPECT_EQ(region.status().cause(), Cause::registration_refused);
}

TEST_P(VerbsContract, InfiniteRetriesAreRefused) {
  QueuePairRoute route = route_to(b_, 1, 2, 14);
  route.retries = 7;
  EXPECT_EQ(a_.pair->connect(route).cause(), Cause::invalid);
  route.retries = 6;
  route.receiver_not_ready_retries = 7;
  EXPECT_EQ(a_.pair->connect(route).cause(), Cause::invalid);
}

TEST_P(VerbsContract, AGidIndexThatIsNotThereIsRefused) {
  QueuePairRoute route = route_to(b_, 1, 2, 14);
  route.gid_index = 200;
  const Status status = a_.pair->connect(route);
  EXPECT_EQ(status.cause(), Cause::device_failed);
  EXPECT_NE(status.text().find("GID index 200"), std::string::npos) << status.text();
}

TEST_P(VerbsContract, ADeviceTellsItsLimitsAndGids) {
  EXPECT_GE(device_->limits().queue_depth, 64U);
  EXPECT_GE(device_->limits().reads_in_flight, 1U);
  EXPECT_TRUE(device_->port().active);
  EXPECT_GE(device_->port().largest_message.count, std::uint64_t{1} << 20U);
  EXPECT_NE(gid_.gid, Gid{}) << "a RoCEv2 entry of an IPv4 address";
  EXPECT_FALSE(verbs_->open("no-such-device").ok());
}

INSTANTIATE_TEST_SUITE_P(Implementations, VerbsContract, testing::ValuesIn(implementations()),
                         [](const testing::TestParamInfo<VerbsUnderTest>& verbs) {
                           return verbs.param.name;
                         });

}  // namespace
}  // namespace gdr::transport
