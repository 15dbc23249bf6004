// Messages to and from guests, barriers, and the protocol between a client and the daemon.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "emu/keep/daemon_protocol.hpp"
#include "emu/keep/session_name.hpp"
#include "emu/process/process.hpp"
#include "emu/process/signals.hpp"
#include "emu/run/barriers.hpp"
#include "emu/run/control_protocol.hpp"
#include "emu/run/host_commands.hpp"
#include "emu/run/native.hpp"
#include "emu/run/run_once.hpp"
#include "src/cli/emulate_options.hpp"
#include "src/common/error.hpp"
#include "src/topology/topology_json.hpp"

namespace {

using namespace gdr;
using namespace gdr::emu;
using Words = std::vector<std::string>;
using Commands = std::vector<std::optional<std::string>>;

template <typename Call>
std::string refusal(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "not refused";
}

TEST(EmuControlProtocol, LinesOfAGuest) {
  EXPECT_EQ(parse_guest_message("ready"), GuestMessage(GuestReady{}));
  EXPECT_EQ(parse_guest_message("failed nic0 has no interface"),
            GuestMessage(GuestFailed{"nic0 has no interface"}));
  EXPECT_EQ(parse_guest_message("exit 0"), GuestMessage(CommandEnded{0}));
  EXPECT_EQ(parse_guest_message("exit 255"), GuestMessage(CommandEnded{255}));
  EXPECT_EQ(parse_guest_message("barrier 17 go"), GuestMessage(BarrierReached{"17", "go"}));
}

TEST(EmuControlProtocol, OtherLinesAreNone) {
  for (const char* line : {"", "Ready", "ready ", "exit", "exit ", "exit x", "exit 1 2", "exit -1",
                           "exit 256", "exit 99999999999", "failed", "barrier", "barrier 17",
                           "barrier 17 ", "barrier  go", "exitx 1"})
    EXPECT_EQ(parse_guest_message(line), std::nullopt) << line;
}

TEST(EmuControlProtocol, AShellGetsTheCommandBackWithItsFolder) {
  const std::string message = run_message("echo 'a\nb'; exit 3", "/tmp/it, here");
  ASSERT_TRUE(message.starts_with("run ") && message.ends_with("\n"));
  EXPECT_EQ(message.find('\n'), message.size() - 1) << "one line";
  Signals signals;
  const auto back = run_to_end(
      {"sh", "-c", "echo '" + message.substr(4, message.size() - 5) + "' | base64 -d"}, signals);
  EXPECT_EQ(back.output, "cd '/tmp/it, here' || exit 125\necho 'a\nb'; exit 3");
  EXPECT_EQ(barrier_message("7", ""), "barrier 7 go\n");
  EXPECT_EQ(barrier_message("7", "h1 is gone"), "barrier 7 h1 is gone\n");
}

using Answers = Barriers::Answers;

TEST(EmuBarriers, TheLastOneLetsAllGo) {
  Barriers barriers({"h0", "h1", "h2"}, {true, true, true});
  for (int round = 0; round < 2; ++round) {
    EXPECT_EQ(barriers.reached(0, "a", "x"), Answers{});
    EXPECT_EQ(barriers.reached(2, "c", "x"), Answers{});
    EXPECT_EQ(barriers.reached(1, "b", "x"), (Answers{{0, "a", ""}, {2, "c", ""}, {1, "b", ""}}));
  }
}

TEST(EmuBarriers, NamesDoNotMeetAndASecondProcessOfAHostStandsForNoOther) {
  Barriers barriers({"h0", "h1"}, {true, true});
  EXPECT_EQ(barriers.reached(0, "a", "x"), Answers{});
  EXPECT_EQ(barriers.reached(1, "b", "y"), Answers{});
  EXPECT_EQ(barriers.reached(0, "a2", "x"), Answers{});
  EXPECT_EQ(barriers.reached(1, "b2", "x"), (Answers{{0, "a", ""}, {0, "a2", ""}, {1, "b2", ""}}));
}

TEST(EmuBarriers, OnlyHostsWithACommandCount) {
  Barriers barriers({"h0", "h1", "h2"}, {true, false, true});
  EXPECT_EQ(barriers.reached(0, "a", "x"), Answers{});
  EXPECT_EQ(barriers.reached(2, "c", "x"), (Answers{{0, "a", ""}, {2, "c", ""}}));
  EXPECT_EQ(barriers.reached(1, "b", "x"), (Answers{{1, "b", "no command runs on this host"}}));
}

TEST(EmuBarriers, WhoHasEndedIsNotWaitedFor) {
  Barriers barriers({"h0", "h1", "h2"}, {true, true, true});
  barriers.reached(0, "a", "x");
  barriers.reached(1, "b", "y");
  EXPECT_EQ(barriers.ended(1), (Answers{{0, "a", "the command of h1 has ended"}}));
  EXPECT_EQ(barriers.reached(2, "c", "x"), (Answers{{2, "c", "the command of h1 has ended"}}));
  EXPECT_EQ(barriers.ended(0), Answers{});
}

TEST(EmuHostCommands, AHostsOwnOrTheOneForAll) {
  const Words hosts{"h0", "h1", "h2"};
  EXPECT_EQ(commands_of({{"echo", "a b"}, {}}, hosts),
            (Commands{"echo 'a b'", "echo 'a b'", "echo 'a b'"}));
  EXPECT_EQ(commands_of({{}, {{"h1", "a; b"}}}, hosts),
            (Commands{std::nullopt, "a; b", std::nullopt}));
  EXPECT_EQ(commands_of({{"x"}, {{"h1", "a; b"}}}, hosts), (Commands{"x", "a; b", "x"}));
}

TEST(EmuHostCommands, WhatCannotBe) {
  const Words hosts{"h0", "h1"};
  EXPECT_EQ(refusal([&] {
              commands_of({{}, {{"h7", "x"}}}, hosts);
            }),
            "--on h7: there is no such host; hosts: h0, h1");
  EXPECT_EQ(refusal([&] {
              commands_of({{}, {{"h0", "x"}, {"h0", "y"}}}, hosts);
            }),
            "--on h0: given twice; a host runs one command");
  EXPECT_TRUE(refusal([&] { commands_of({}, hosts); }).starts_with("COMMAND is missing"));
  const std::string longest(longest_command, 'x');
  EXPECT_NO_THROW(commands_of({{longest}, {}}, hosts));
  EXPECT_EQ(refusal([&] {
              commands_of({{longest + "x"}, {}}, hosts);
            }),
            "COMMAND has 100001 bytes; allowed are 100000: put it into a file");
}

TEST(EmuDaemonProtocol, ARequestComesBack) {
  for (const RunRequest& request :
       {RunRequest{}, RunRequest{{{"a", "", "b c"}, {}}, "/here", true, "*:loss=1%", 7},
        RunRequest{{{"a"}, {{"h0", "x\ny"}, {"h1", ""}}}, "", false, "", ~std::uint64_t{0}}})
    EXPECT_EQ(decode_run_request(encode(request)), request);
}

TEST(EmuDaemonProtocol, WhatIsNoRequest) {
  using namespace std::string_literals;
  for (const std::string& text :
       {""s, "/"s, "/\0\0"s, "/\0\0\0001\0x\0"s, "/\0\0\0001\0001\0"s, "/\0\0\0001\0000\0h0\0"s,
        "/\0\0\0001\0002\0a\0"s, "/\0\0\0001\0001\0a\0h0\0x"s, "/\0\0\0x\0000\0"s,
        "/\0\0\0\0000\0"s})
    EXPECT_EQ(decode_run_request(text), std::nullopt) << printable(text);
}

TEST(EmuDaemonProtocol, ALongTextComesInParts) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends.data()), 0);
  const UniqueFd a(ends[0]);
  UniqueFd b(ends[1]);
  EXPECT_EQ(receive_packet(b.get()), std::nullopt) << "none yet";
  std::string text;
  for (std::size_t i = 0; i < 5 * packet_size + 3; ++i) text += static_cast<char>('a' + i % 23);
  Outbox out;
  out.put(message::output, text);
  out.put(message::exit, "3");
  std::string got;
  std::string end;
  while (end.empty()) {
    ASSERT_TRUE(out.flush(a.get()));
    while (const auto packet = receive_packet(b.get()))
      (packet->front() == message::output ? got : end) += packet->substr(1);
  }
  EXPECT_EQ(got, text);
  EXPECT_EQ(end, "3");
  EXPECT_TRUE(out.empty());
  b.reset();
  out.put(message::exit, "3");
  EXPECT_FALSE(out.flush(a.get())) << "the other side is gone";
  EXPECT_EQ(receive_packet(a.get()), "");
}

class EmuSessionName : public testing::Test {
 protected:
  EmuSessionName() { setenv("XDG_RUNTIME_DIR", folder_.c_str(), 1); }
  ~EmuSessionName() override {
    unsetenv("XDG_RUNTIME_DIR");
    std::filesystem::remove_all(folder_);
  }
  EmuSessionName(const EmuSessionName&) = delete;
  EmuSessionName& operator=(const EmuSessionName&) = delete;

  std::string folder_ = [] {
    std::string path = std::filesystem::temp_directory_path() / "gdr-names-XXXXXX";
    return std::string(mkdtemp(path.data()));
  }();
};

TEST_F(EmuSessionName, ANameIsTakenOnce) {
  const auto files = session_files(sessions_folder(), "a.b-1");
  EXPECT_FALSE(in_use(files));
  auto lock = take_name(files);
  ASSERT_TRUE(lock);
  EXPECT_TRUE(in_use(files));
  EXPECT_FALSE(take_name(files));
  EXPECT_EQ(session_names(folder_ + "/gdr"), Words{"a.b-1"});
  lock.reset();
  EXPECT_FALSE(in_use(files)) << "its owner is gone";
  EXPECT_TRUE(take_name(files));
}

TEST_F(EmuSessionName, WhatADeadOwnerLeftIsRemovedAndWhatALivingOneHasIsNot) {
  const auto files = session_files(sessions_folder(), "a");
  {
    auto lock = take_name(files);
    const auto listener = listen_at(files.socket);
    EXPECT_TRUE(connect_to(files.socket));
    clean_up(files);
    EXPECT_TRUE(std::filesystem::exists(files.socket));
  }
  EXPECT_FALSE(connect_to(files.socket)) << "nobody listens";
  std::ofstream(files.failure) << "why";
  EXPECT_TRUE(take_name(files)) << "the socket is no obstacle";
  EXPECT_FALSE(std::filesystem::exists(files.socket));
  EXPECT_FALSE(std::filesystem::exists(files.failure));
  clean_up(files);
  EXPECT_EQ(session_names(folder_ + "/gdr"), Words{});
}

TEST_F(EmuSessionName, NamesAndFoldersThatCannotBe) {
  for (const std::string& name : {std::string(), std::string("a/b"), std::string(".a"),
                                  std::string("a b"), std::string("\xc3\xa4")})
    EXPECT_TRUE(refusal([&] { session_files("/tmp", name); }).starts_with("NAME: found \""))
        << name;
  EXPECT_TRUE(refusal([&] {
                session_files("/tmp", std::string(100, 'a'));
              }).ends_with("choose a shorter name"));
  sessions_folder();
  chmod((folder_ + "/gdr").c_str(), 0755);
  EXPECT_EQ(refusal([&] { sessions_folder(); }),
            folder_ + "/gdr: must be your own folder, closed to other users (mode 0700)");
}

TEST(EmuDeadline, SaysWhoWasLate) {
  const Deadline deadline({90});
  EXPECT_FALSE(deadline.passed());
  EXPECT_EQ(deadline.left_ms(), 1000);
  EXPECT_EQ(deadline.message({"h0", "h1"}, "not up"),
            "h0, h1: not up after 90s (--timeout): stopped");
  EXPECT_TRUE(Deadline({0}).passed());
}

TEST(EmuNative, SaysWhatIsMissing) {
  EXPECT_EQ(missing_for_native({true, true, true, "6.1"}), Words{});
  EXPECT_EQ(
      missing_for_native({false, false, false, "6.1"}),
      (Words{"this machine's kernel 6.1 has no module rdma_rxe (CONFIG_RDMA_RXE)",
             "ip and rdma are not in PATH (package iproute2)", "only root may add rxe devices"}));
}

TEST(EmuNative, AnInterfaceAndAnRxeDeviceANic) {
  const Topology topology =
      load_topology(GDR_PROJECT_DIR "/topologies/servers/sandybridge-one-socket.json");
  const auto plan = plan_native(topology);
  EXPECT_EQ(
      plan.set_up,
      (std::vector<Words>{{"modprobe", "rdma_rxe"},
                          {"ip", "link", "add", "gdr-nic0", "mtu", "4200", "type", "dummy"},
                          {"ip", "address", "add", "10.0.0.1/24", "dev", "gdr-nic0"},
                          {"ip", "link", "set", "gdr-nic0", "up"},
                          {"rdma", "link", "add", "rxe0", "type", "rxe", "netdev", "gdr-nic0"}}));
  EXPECT_EQ(plan.take_down, (std::vector<Words>{{"ip", "link", "delete", "gdr-nic0"}}));
  const std::vector<std::pair<std::string, std::string>> environment{
      {"GDR_HOST", "h0"}, {"GDR_HOST_INDEX", "0"}, {"GDR_PEERS", ""}, {"GDR_NIC_0", "10.0.0.1"}};
  EXPECT_EQ(plan.environment, environment);
  const Topology two = load_topology(GDR_PROJECT_DIR "/topologies/clusters/two-gh200.json");
  EXPECT_EQ(refusal([&] { plan_native(two); }),
            "two-gh200: --native runs a topology of one host, this has 2; without --native each is "
            "a guest");
}

TEST(EmuNative, RunsTheCommandAndTakesDown) {
  const std::string mark =
      std::filesystem::temp_directory_path() / ("gdr-native-" + std::to_string(getpid()));
  NativePlan plan;
  plan.set_up = {{"touch", mark}};
  plan.take_down = {{"/no/such/program"}, {"rm", mark}};
  plan.environment = {{"GDR_NIC_0", "it's"}};
  Signals signals;
  EXPECT_EQ(run_native(plan, "[ \"$GDR_NIC_0\" = \"it's\" ] && [ -e " + mark + " ] && exit 7", {60},
                       signals),
            7);
  EXPECT_FALSE(std::filesystem::exists(mark));
  EXPECT_EQ(run_native(plan, "sleep 60", {0.3}, signals), exit_timeout);
  EXPECT_FALSE(std::filesystem::exists(mark));
  plan.set_up.push_back({"false"});
  EXPECT_EQ(refusal([&] { run_native(plan, "true", {60}, signals); }),
            "--native: \"false\" failed with 1: ");
  EXPECT_FALSE(std::filesystem::exists(mark));
}

TEST(EmuTraffic, ColumnsOfWhatHappened) {
  fabric::FabricCounters counters;
  counters.ports.resize(2);
  counters.ports[0].name = "h0/nic0";
  counters.ports[0].tx.arrived.frames = 100;
  counters.ports[0].tx.passed.frames = 97;
  counters.ports[0].tx.dropped.loss = 2;
  counters.ports[0].tx.dropped.filtered = 1;
  counters.ports[0].roce.resize(2);
  counters.ports[0].roce[0].payload = {4000};
  counters.ports[0].roce[1].payload = {96};
  counters.ports[1].name = "h1/nic0";
  counters.ports[1].rx.arrived.frames = counters.ports[1].rx.passed.frames = 97;
  EXPECT_EQ(cli::traffic_table(to_json(counters)),
            "link        frames  passed  lost  dropped else  RoCE payload\n"
            "h0/nic0.tx     100      97     2             1          4096\n"
            "h0/nic0.rx       -       -     -             -             -\n"
            "h1/nic0.tx       -       -     -             -             -\n"
            "h1/nic0.rx      97      97     -             -             -\n");
  counters.pcap_error = "x.pcap: No space left on device";
  EXPECT_TRUE(cli::traffic_table(to_json(counters))
                  .ends_with("the capture ends early: x.pcap: No space left on device\n"));
}

}  // namespace
