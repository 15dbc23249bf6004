// How gdr emulate --compare reads observations and compares them with a plan.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>

#include "emu/agreement/agreement.hpp"
#include "emu/agreement/stream_reader.hpp"
#include "emu/agreement/wire_observer.hpp"
#include "sim/predict.hpp"
#include "src/report/agreement_output.hpp"
#include "src/topology/topology_json.hpp"
#include "src/transport/lanes/frame.hpp"
#include "src/transport/measure.hpp"
#include "tests/support/fabric_support.hpp"
#include "tests/support/verdict_support.hpp"

namespace gdr::agreement {
namespace {

constexpr Bytes size{1U << 20U};
constexpr Bytes control{640};

/// A transfer between two DGX A100, with the observations that match the plan.
struct Lab {
  explicit Lab(PathKind path, Operation operation = Operation::write)
      : topology(load_topology(GDR_PROJECT_DIR "/topologies/clusters/two-dgx-a100.json")),
        graph(topology) {
    Transfer transfer;
    transfer.from = find_device(topology, "h0/gpu0");
    transfer.to = find_device(topology, "h1/gpu0");
    transfer.path = path;
    transfer.operation = operation;
    transfer.size = size;
    plan = plan_transfer(graph, verdict_test::models(), transfer);
    SideObservation& from = seen.from;
    SideObservation& to = seen.to;
    from.sent.sent = to.delivered.sent = from.module.host_read = to.module.host_written = control;
    if (path != PathKind::gdr) {
      from.process->copy_engine_out = from.module.copied_out = size;
      to.process->copy_engine_in = to.module.copied_in = size;
    }
    if (path == PathKind::staged) {
      from.process->bounce_out = to.process->bounce_in = size;
      from.module.host_read = from.module.host_read + size;
      to.module.host_written = to.module.host_written + size;
    }
    if (path == PathKind::gdr) from.module.nic_read = to.module.nic_written = size;
    const bool fetched = path == PathKind::gdr && operation != Operation::write;
    if (path == PathKind::gdr) (fetched ? to : from).process->rdma = size;
    if (path == PathKind::tcp) {
      from.process->socket_out = to.process->socket_in = from.sent.stream = to.delivered.stream =
          size;
      from.sent.stream_control = to.delivered.stream_control = Bytes{1000};
      from.tcp = size + Bytes{1000};
    } else if (fetched) {
      from.sent.read = to.delivered.read = to.announced = size;
    } else {
      from.sent.written = to.delivered.written = from.announced = size;
    }
  }
  [[nodiscard]] ByteAudit compared() const { return audit(graph, plan, seen); }
  /// The rows that are not equal: "stage copy-engine h0/gpu0 > h0/numa3"...
  [[nodiscard]] std::string unequal() const {
    const ByteAudit audit = compared();
    std::string text;
    const auto add = [&](const char* word, const std::vector<Row>& rows) {
      for (const Row& row : rows)
        if (!row.equal())
          text += std::string(word) + " " + row.mover + " " + row.from + " > " + row.to + "; ";
    };
    add("stage", audit.stages);
    add("memory", audit.host_memory);
    add("beside", audit.beside);
    EXPECT_EQ(text.empty(), audit.equal());
    return text;
  }

  Topology topology;
  Graph graph;
  TransferPlan plan;
  Observation seen;
};

Bytes less_control(Bytes bytes) { return {bytes.count - std::min(bytes.count, control.count)}; }

TEST(Agreement, WhatGoesAsPlannedIsEqual) {
  for (const PathKind path : {PathKind::gdr, PathKind::staged, PathKind::tcp})
    for (const Operation operation : {Operation::write, Operation::read, Operation::send}) {
      const Lab lab(path, operation);
      EXPECT_EQ(lab.unequal(), "") << to_string(path) << " " << to_string(operation);
      EXPECT_EQ(lab.compared().stages.size(), lab.plan.stages.size());
    }
}

/// The user's own program reports nothing; its RDMA sends are data, its TCP bytes are not.
TEST(Agreement, ProgramsOfSomebodysOwnAreSeenByTheOthers) {
  for (const PathKind path : {PathKind::gdr, PathKind::staged}) {
    Lab lab(path);
    for (SideObservation* side : {&lab.seen.from, &lab.seen.to}) {
      side->process.reset();
      side->sent.stream = Bytes{1222};  // its own control bytes
      // Sends instead of writes, which carry only data.
      side->module.host_read = less_control(side->module.host_read);
      side->module.host_written = less_control(side->module.host_written);
      for (WireBytes* bytes : {&side->sent, &side->delivered}) {
        bytes->sent = bytes->written;
        bytes->written = {};
        *bytes = with_sends_as_data(*bytes);
      }
      side->announced = {};
    }
    EXPECT_EQ(lab.seen.from.sent.stream_control, Bytes{1222});
    EXPECT_EQ(lab.unequal(), "") << to_string(path);
    const auto observed = lab.seen;
    lab.seen.from.module.copied_out.count += 4096;
    EXPECT_NE(lab.unequal().find("copy-engine h0/gpu0"), std::string::npos) << "one copy more";
    lab.seen = observed;
    lab.seen.from.module.nic_read = {};
    lab.seen.from.module.host_read = size;
    if (path == PathKind::gdr) {
      EXPECT_NE(lab.unequal().find("stage nic-read h0/gpu0 > h0/nic0"), std::string::npos)
          << "out of host memory";
    }
    lab.seen = observed;
    lab.seen.from.sent.written = lab.seen.to.delivered.written = {};
    EXPECT_NE(lab.unequal().find("stage wire"), std::string::npos) << "by another way";
  }
}

TEST(Agreement, StagesAreThoseOfExplain) {
  sim::Simulator simulator;
  for (const PathKind path : {PathKind::gdr, PathKind::staged, PathKind::tcp}) {
    const Lab lab(path);
    const Hardware hardware(lab.graph, verdict_test::models());
    std::string explained;
    for (const sim::StageReport& stage :
         sim::explain(simulator, hardware, lab.plan.transfer, {}).stages)
      if (stage.mover)
        explained += fmt::format("{} {} {} {}\n", to_string(*stage.mover), stage.from, stage.to,
                                 stage.bytes.count);
    std::string compared;
    for (const Row& row : lab.compared().stages)
      compared += fmt::format("{} {} {} {}\n", row.mover, row.from, row.to, row.planned.count);
    EXPECT_EQ(compared, explained);
  }
}

TEST(Agreement, HostMemoryIsTouchedAsTheTransportSays) {
  const auto touched = [](PathKind path) {
    return Lab(path).compared().host_memory.front().planned.count / size.count;
  };
  EXPECT_EQ(touched(PathKind::gdr), 0);
  EXPECT_EQ(touched(PathKind::staged), 2);
  EXPECT_EQ(touched(PathKind::tcp), 4);
}

TEST(Agreement, NothingObservedIsNotEqual) {
  Lab lab(PathKind::gdr);
  lab.seen = {};
  EXPECT_EQ(lab.unequal(),
            "stage nic-read h0/gpu0 > h0/nic0; stage wire h0/nic0 > h1/nic0; stage nic-write "
            "h1/nic0 > h1/gpu0; ");
  EXPECT_FALSE(Row{}.equal()) << "0 planned and nobody looked";
}

TEST(Agreement, AnExtraCopyIsNamed) {
  Lab staged(PathKind::staged);
  staged.seen.from.module.copied_out = size * 2;
  EXPECT_EQ(staged.unequal(), "stage copy-engine h0/gpu0 > h0/numa3; memory all h0/memory > ; ");
  Lab gdr(PathKind::gdr);
  gdr.seen.from.process->copy_engine_out = gdr.seen.from.module.copied_out = size;
  EXPECT_EQ(gdr.unequal(), "memory all h0/memory > ; beside copy-engine h0/gpu0 > h0/memory; ");
  Lab within(PathKind::gdr);
  within.seen.to.process->copy_engine_within = Bytes{1};
  EXPECT_EQ(within.unequal(), "beside copy-engine h1/gpu0 > h1/gpu0; ");
}

TEST(Agreement, EachByteTooFewIsSeen) {
  Lab lab(PathKind::staged);
  --lab.seen.to.module.copied_in.count;
  EXPECT_EQ(lab.unequal(), "stage copy-engine h1/numa3 > h1/gpu0; ");
}

TEST(Agreement, GdrThroughHostMemoryIsFoundByTheModuleAlone) {
  Lab lab(PathKind::gdr);
  lab.seen.from.module.nic_read = {};
  lab.seen.from.module.host_read = control + size;
  EXPECT_EQ(lab.unequal(),
            "stage nic-read h0/gpu0 > h0/nic0; memory all h0/memory > ; beside nic-read h0/memory "
            "> h0/nic0; ");
}

TEST(Agreement, TheTransportsWordIsNotEnough) {
  Lab lab(PathKind::staged);
  lab.seen.from.module.host_read = control + size * 2;
  EXPECT_EQ(lab.unequal(), "stage nic-read h0/numa3 > h0/nic0; memory all h0/memory > ; ");
}

/// A packet that is built again is read again, whether or not the fabric saw the first one: neither
/// count is part of a stage, and neither can hide a copy.
TEST(Agreement, WhatIsReadOrSentAgainIsNoPartOfAStage) {
  for (const PathKind path : {PathKind::gdr, PathKind::staged})
    for (const Operation operation : {Operation::write, Operation::read, Operation::send}) {
      Lab lab(path, operation);
      lab.seen.from.module.read_again =
          Bytes{40960};  // more than was sent again: dropped in between
      lab.seen.from.sent.written_again = Bytes{8192};
      lab.seen.from.sent.read_again = Bytes{4096};
      lab.seen.from.sent.sent_again = Bytes{64};
      EXPECT_EQ(lab.unequal(), "") << to_string(path) << " " << to_string(operation);
      Bytes& read =
          path == PathKind::gdr ? lab.seen.from.module.nic_read : lab.seen.from.module.host_read;
      read = read + Bytes{8192};
      EXPECT_EQ(lab.unequal(), path == PathKind::gdr
                                   ? "stage nic-read h0/gpu0 > h0/nic0; "
                                   : "stage nic-read h0/numa3 > h0/nic0; memory all h0/memory > ; ")
          << "as much more in packets that were new";
    }
}

TEST(Agreement, OtherDevicesAndWaysCount) {
  Lab lab(PathKind::gdr);
  lab.seen.from.other_nics.written = Bytes{1};
  lab.seen.to.module.other_gpus = Bytes{1};
  lab.seen.to.sent.stream = Bytes{1};
  EXPECT_EQ(lab.unequal(),
            "memory all h1/memory > ; beside any h0/other NICs > ; beside socket-copy h1/memory > "
            "socket; beside any h1/other GPUs > ; "
            "beside wire h1/nic0 > h0/nic0; ");
}

// The streams.

std::vector<std::byte> bytes_of_plan() {
  transport::MeasurePlan plan;
  plan.sizes = {Bytes{8}, size};
  auto [ours, theirs] = transport::stream_pair();
  EXPECT_TRUE(transport::send_plan(*ours, plan, Duration{1}).ok());
  std::vector<std::byte> bytes(1000);
  bytes.resize(theirs->read_some(bytes).value());
  return bytes;
}

void append(std::vector<std::byte>& to, const std::vector<std::byte>& more) {
  to.insert(to.end(), more.begin(), more.end());
}

std::vector<std::byte> bytes_of_frame(transport::FrameType type, std::uint32_t payload) {
  transport::Frame frame;
  frame.type = type;
  frame.payload = payload;
  frame.total = payload;
  std::vector<std::byte> bytes(transport::frame_header + payload, std::byte{7});
  transport::put_frame(
      std::span<std::byte, transport::frame_header>(bytes.data(), transport::frame_header), frame);
  return bytes;
}

/// A client's or a server's side of a stream with 5000 bytes of data in two frames.
std::vector<std::byte> stream_bytes(bool client) {
  std::vector<std::byte> bytes = client ? bytes_of_plan() : std::vector<std::byte>{};
  transport::Hello hello;
  hello.memory = "bar0";
  append(bytes, transport::put_hello(hello));
  append(bytes, bytes_of_frame(transport::FrameType::share, 4));
  append(bytes, bytes_of_frame(transport::FrameType::put, 4096));
  append(bytes, bytes_of_frame(transport::FrameType::done, 0));
  append(bytes, bytes_of_frame(transport::FrameType::reply, 904));
  append(bytes, bytes_of_frame(transport::FrameType::goodbye, 0));
  return bytes;
}

TEST(AgreementStream, DataIsToldFromControlHoweverItIsCut) {
  for (const bool client : {true, false}) {
    const auto bytes = stream_bytes(client);
    for (std::size_t cut = 0; cut <= bytes.size(); cut += 7) {
      StreamReader reader;
      reader.take(std::span(bytes).first(cut));
      EXPECT_EQ(reader.data().count + reader.control().count, cut);
      reader.take(std::span(bytes).subspan(cut));
      EXPECT_EQ(reader.data().count, 5000);
      EXPECT_EQ(reader.control().count, bytes.size() - 5000);
    }
  }
}

TEST(AgreementStream, WhatIsNotTheTransportsIsData) {
  const std::vector<std::byte> other(1000, std::byte{'x'});
  StreamReader foreign;
  foreign.take(other);
  EXPECT_EQ(foreign.data().count, 1000);
  // After a greeting, too.
  std::vector<std::byte> bytes = stream_bytes(true);
  const std::size_t controls = bytes.size() - 5000;
  append(bytes, other);
  StreamReader reader;
  reader.take(bytes);
  EXPECT_EQ(reader.data().count, 6000);
  EXPECT_EQ(reader.control().count, controls);
}

TEST(AgreementStream, SegmentsComeInAnyOrderAndAgain) {
  const auto bytes = stream_bytes(true);
  const std::span<const std::byte> all(bytes);
  const std::uint32_t start = 0xfffffff0U;  // the numbers wrap
  const auto part = [&](std::size_t from, std::size_t count) {
    return all.subspan(from, std::min(count, all.size() - from));
  };
  StreamFollower follower;
  const auto take = [&](std::size_t from, std::size_t count) {
    follower.take(start + 1 + static_cast<std::uint32_t>(from), false, part(from, count));
  };
  follower.take(start, true, {});
  take(100, 100);
  take(0, 60);
  take(0, 60);
  take(40, 80);
  EXPECT_EQ(follower.data().count + follower.control().count, 200);
  take(150, all.size());
  EXPECT_EQ(follower.data().count, 5000);
  EXPECT_EQ(follower.control().count, bytes.size() - 5000);
  // The same ports again, from another number.
  follower.take(77, true, {});
  follower.take(78, false, all);
  EXPECT_EQ(follower.data().count, 10000);
}

TEST(AgreementWire, PayloadByOpcodeAndStream) {
  using namespace fabric::test;
  WireObserver observer;
  const auto take = [&](const fabric::Frame& frame, bool delivered = false) {
    observer.take("h0/nic0", delivered, frame);
  };
  const std::initializer_list<std::uint8_t> reth{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0};
  take(roce_frame({.opcode = 0x06, .psn = 1, .payload = 1024, .extension = reth}));
  take(roce_frame({.opcode = 0x08, .psn = 2, .payload = 1024}));
  take(roce_frame({.opcode = 0x08, .psn = 2, .payload = 1024}));
  take(roce_frame({.opcode = 0x04, .psn = 3, .payload = 64}));
  take(roce_frame({.opcode = 0x10, .psn = 9, .payload = 256, .extension = {0, 0, 0, 0}}), true);
  take(roce_frame({.opcode = 0x11, .psn = 9, .payload = 0, .extension = {0, 0, 0, 0}}), true);
  take(tcp_frame({.payload = 100}));
  take(tcp_frame({.payload = 100}));
  const auto ports = observer.ports();
  ASSERT_EQ(ports.size(), 1U);
  WireBytes sent{Bytes{2048}, Bytes{64}, {}, Bytes{1024}, {}, {}, Bytes{100}, {}};
  EXPECT_EQ(ports.at("h0/nic0").sent, sent);
  EXPECT_EQ(ports.at("h0/nic0").delivered, (WireBytes{{}, {}, Bytes{256}, {}, {}, {}, {}, {}}));
  EXPECT_EQ(sent - sent, WireBytes{});
  EXPECT_EQ(sent + WireBytes{}, sent);
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

// What is printed.

TEST(AgreementOutput, TableFitsAndNamesWhatIsUnequal) {
  const Lab tcp(PathKind::tcp);
  Lab gdr(PathKind::gdr);
  gdr.seen.from.sent.written_again = Bytes{8192};
  gdr.seen.from.module.read_again = Bytes{40960};
  std::vector<report::ComparedPath> paths{{tcp.plan, tcp.seen, tcp.compared(), ""},
                                          {gdr.plan, gdr.seen, gdr.compared(), ""}};
  const std::string good = report::compared_to_text(tcp.graph, paths, {{"staged", "no reason"}});
  for (const std::string& line : lines_of(good)) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_NE(good.find("\nAll bytes are equal.\n"), std::string::npos) << good;
  EXPECT_NE(good.find("staged: not possible: no reason"), std::string::npos) << good;
  EXPECT_EQ(good.find("NO"), std::string::npos) << good;
  EXPECT_NE(good.find("\n  again, beside it: 8KiB sent, 40KiB read by NICs\n"), std::string::npos)
      << good;

  gdr.seen.from.module.copied_out = size;
  paths[1] = {gdr.plan, gdr.seen, gdr.compared(), ""};
  const std::string bad = report::compared_to_text(tcp.graph, paths, {});
  for (const std::string& line : lines_of(bad)) EXPECT_LE(line.size(), 80U) << line;
  EXPECT_NE(
      bad.find("\nNOT equal:\n  gdr: copy-engine h0/gpu0 > h0/memory\n  gdr: all h0/memory\n"),
      std::string::npos)
      << bad;
  const json::Value document = report::compared_to_json(tcp.graph, paths, {});
  EXPECT_EQ(*document.find("equal"), json::Value(false));
  const auto& list = *document.find("paths")->as<json::Array>();
  EXPECT_EQ(*list[0].find("equal"), json::Value(true));
  EXPECT_EQ(*list[1].find("equal"), json::Value(false));
  EXPECT_EQ(list[0].find("stages")->as<json::Array>()->size(), 7U);
  EXPECT_EQ(*list[1].find("repeated_bytes"), json::Value(std::uint64_t{8192}));
  EXPECT_EQ(*list[1].find("read_again_bytes"), json::Value(std::uint64_t{40960}));
}

TEST(AgreementOutput, AFailedTransferIsNotEqual) {
  const Lab lab(PathKind::gdr);
  const std::vector<report::ComparedPath> paths{
      {lab.plan, {}, {}, "the transfer failed (exit code 1)"}};
  EXPECT_NE(report::compared_to_text(lab.graph, paths, {})
                .find("NOT equal:\n  gdr: the transfer failed (exit code 1)"),
            std::string::npos);
  EXPECT_EQ(*report::compared_to_json(lab.graph, paths, {}).find("equal"), json::Value(false));
}

}  // namespace
}  // namespace gdr::agreement
