// What a guest runs for gdr emulate --compare, and how its output is read.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>

#include "emu/agreement/guest_report.hpp"
#include "tests/support/fabric_support.hpp"

namespace gdr::agreement {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::string counts(unsigned gpu, std::uint64_t from) {
  std::string text;
  for (const char* name : {"regions", "cpu_read", "cpu_written", "nic_read", "nic_read_again",
                           "nic_written", "host_read", "host_read_again", "host_written"})
    text += fmt::format("/sys/class/misc/gdr-gpu{}/counts:{} {}\n", gpu, name, from++);
  return text;
}

const std::string transfer_output =
    "gdr-transfer\n{\"path\": \"staged\", \"moved_bytes\": {\"copy_engine_out\": 1, "
    "\"copy_engine_in\": 2, \"copy_engine_within\": 3,\n"
    "\"cpu\": 4, \"rdma\": 5, \"bounce_out\": 6, \"bounce_in\": 7, \"socket_out\": 8, "
    "\"socket_in\": 9}}\n";

TEST(AgreementGuest, ReportIsReadAsDifferences) {
  const std::string text = "noise\ngdr-counts before\n" + counts(0, 10) + counts(1, 10) +
                           transfer_output + "gdr-counts after\n" + counts(0, 110) + counts(1, 11);
  const GuestReport report = read_report(lines_of(text), 0);
  EXPECT_EQ(report.path, "staged");
  const Bytes hundred{100};
  EXPECT_EQ(report.module, (ModuleBytes{.copied_out = hundred,
                                        .copied_in = hundred,
                                        .nic_read = hundred,
                                        .nic_written = hundred,
                                        .host_read = hundred,
                                        .host_written = hundred,
                                        .read_again = Bytes{200},
                                        .other_gpus = Bytes{5}}));
  EXPECT_EQ(report.process, (ProcessBytes{{1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}}));
}

TEST(AgreementGuest, WhatIsMissingIsSaid) {
  using fabric::test::error_of;
  const auto error = [](const std::string& text) {
    return error_of([&] { (void)read_report(lines_of(text), 2); });
  };
  EXPECT_EQ(error("gdr-counts before\n" + counts(2, 1)), "the guest's output ends early");
  EXPECT_EQ(error("gdr-counts before\n" + counts(0, 1) + transfer_output + "gdr-counts after\n" +
                  counts(0, 1)),
            "no counts of gpu2 in the guest's output");
  EXPECT_EQ(error("gdr-counts before\n/sys/class/misc/gdr-gpu2/counts:regions 1\n" +
                  transfer_output + "gdr-counts after\n" + counts(2, 1)),
            "no count cpu_read of gpu2 in the guest's output");
  EXPECT_EQ(error("gdr-counts before\n" + counts(2, 1) +
                  "gdr-transfer\n{\"moved_bytes\": {}}\ngdr-counts after\n" + counts(2, 1)),
            "no \"moved_bytes\" with \"copy_engine_out\" in what gdr transfer printed");
}

TEST(AgreementGuest, AProgramOfSomebodysOwnIsPutBetweenTheCounts) {
  GuestRun run;
  run.program = "./send # quickly";
  EXPECT_NE(guest_command(run).find("; (./send # quickly\n) || exit; "), std::string::npos)
      << guest_command(run);
  const std::string text = "gdr-counts before\n" + counts(0, 10) +
                           "gdr-program\n{ no JSON\n\ngdr-counts after\n" + counts(0, 110);
  const GuestReport report = read_report(lines_of(text), 0);
  EXPECT_FALSE(report.process);
  EXPECT_EQ(report.module.nic_written, Bytes{100});
  EXPECT_TRUE(is_report_line("gdr-counts after"));
  EXPECT_TRUE(is_report_line("/sys/class/misc/gdr-gpu0/counts:regions 1"));
  EXPECT_FALSE(is_report_line("{ no JSON"));
}

TEST(AgreementGuest, ClientAndServerRunTheSameTool) {
  GuestRun run{"/usr/bin/gdr", 3, 2, "gdr", "read", Bytes{4096}, "--chunk 16KiB", "10.2.0.2", ""};
  EXPECT_NE(guest_command(run).find(
                "/usr/bin/gdr transfer --memory bar:3 --device rxe2 --path gdr --format json"),
            std::string::npos);
  EXPECT_NE(guest_command(run).find(" --operation read --size 4096B --iterations 1 --depth 1 "
                                    "--connect-limit 10min --chunk 16KiB 10.2.0.2 || exit"),
            std::string::npos);
  run.server = "";
  EXPECT_EQ(guest_command(run).find("--operation"), std::string::npos);
}

}  // namespace
}  // namespace gdr::agreement
