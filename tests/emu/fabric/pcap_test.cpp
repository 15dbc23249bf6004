#include "emu/fabric/pcap.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "src/common/file.hpp"
#include "tests/support/fabric_support.hpp"

namespace {

using namespace gdr::fabric;
using namespace gdr::fabric::test;

class FabricPcap : public testing::Test {
 protected:
  FabricPcap() {
    std::string name = (std::filesystem::temp_directory_path() / "gdr-pcap-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder = name;
  }
  ~FabricPcap() override { std::filesystem::remove_all(folder); }
  [[nodiscard]] std::string file() const { return folder + "/capture.pcap"; }

  std::string folder;
};

std::uint32_t word(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

TEST_F(FabricPcap, Format) {
  PcapWriter writer(file(), {1'700'000'000'999'999'999});
  const Frame frame = plain_frame(mac(2), mac(1), 60);
  writer.write(frame, gdr::Duration{2e-9});
  // Read the file while the writer has it open.
  const std::string bytes = gdr::read_file(file());
  ASSERT_EQ(bytes.size(), 24 + 16 + 60U);
  EXPECT_EQ(word(bytes, 0), 0xa1b23c4dU) << "nanoseconds";
  EXPECT_EQ(word(bytes, 16), 65536U);
  EXPECT_EQ(word(bytes, 20), 1U) << "LINKTYPE_ETHERNET";
  EXPECT_EQ(word(bytes, 24), 1'700'000'001U) << "the nanoseconds carry over";
  EXPECT_EQ(word(bytes, 28), 1U);
  EXPECT_EQ(word(bytes, 32), 60U);
  EXPECT_EQ(word(bytes, 36), 60U);
  EXPECT_EQ(bytes.substr(40), std::string(frame.begin(), frame.end()));
  EXPECT_EQ(writer.error(), "");
}

TEST_F(FabricPcap, Errors) {
  EXPECT_EQ(error_of([&] { PcapWriter(folder + "/no/such", {}); }),
            folder + "/no/such: cannot write it: No such file or directory");
  EXPECT_EQ(error_of([&] { PcapWriter("/dev/full", {}); }),
            "/dev/full: cannot write it: No space left on device; its last frame is cut off");
}

TEST_F(FabricPcap, AFullDiskLeavesAWholeFile) {
  // A limit on file sizes stands for a full disk.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  PcapWriter writer(file(), {});
  const auto handler = std::signal(SIGXFSZ, SIG_IGN);
  const rlimit small{4000, before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &small), 0);
  for (int i = 0; i < 10; ++i) writer.write(plain_frame(mac(2), mac(1), 1000), {});
  ::setrlimit(RLIMIT_FSIZE, &before);
  (void)std::signal(SIGXFSZ, handler);
  EXPECT_EQ(writer.error(), file() + ": cannot write it: No space left on device");
  EXPECT_EQ(gdr::read_file(file()).size(), 24 + 3 * (16 + 1000U))
      << "three whole frames, and nothing of the fourth";
}

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  if (pipe == nullptr) return text;
  std::array<char, 4096> buffer{};
  while (const std::size_t count = std::fread(buffer.data(), 1, buffer.size(), pipe))
    text.append(buffer.data(), count);
  pclose(pipe);
  return text;
}

TEST_F(FabricPcap, TsharkReadsRoce) {
  if (std::system("command -v tshark >/dev/null 2>&1") != 0)
    GTEST_SKIP() << "tshark is not installed";
  PcapWriter writer(file(), {1'700'000'000'000'000'123});
  writer.write(roce_frame({.opcode = 0x06,
                           .psn = 0xfffffe,
                           .qp = 0x11,
                           .payload = 1024,
                           .extension = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0}}),
               {});
  writer.write(roce_frame({.opcode = 0x11,
                           .psn = 0xfffffe,
                           .qp = 0x12,
                           .payload = 0,
                           .extension = {0, 0, 0, 1},
                           .from = 2,
                           .to = 1}),
               gdr::Duration{1e-6});
  const std::string text =
      output_of("tshark -r " + file() +
                " -T fields -E separator=, -e frame.time_epoch -e infiniband.bth.opcode -e "
                "infiniband.bth.psn "
                "-e infiniband.bth.destqp -e infiniband.reth.dmalen 2>/dev/null");
  EXPECT_EQ(text,
            "1700000000.000000123,6,16777214,0x000011,65536\n"
            "1700000000.000001123,17,16777214,0x000012,\n");
  EXPECT_EQ(output_of("tshark -r " + file() +
                      " -Y 'ip.checksum.status == 0' -o ip.check_checksum:TRUE 2>/dev/null"),
            "");
}

}  // namespace
