#include "src/study/figures.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "src/common/error.hpp"
#include "src/common/terminal_text.hpp"

namespace gdr::study {
namespace {

constexpr double mebi = 1048576.0;
constexpr double gibi = 1073741824.0;

bool has(std::string_view text, std::string_view part) {
  return text.find(part) != std::string_view::npos;
}

/// True for a usable figure: finite and positive.
std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool good = error == std::errc{} && end == text.data() + text.size() &&
                    std::isfinite(value) && value > 0 && value < 1e15;
  return good ? std::optional(value) : std::nullopt;
}

std::optional<Bytes> size_of(std::string_view text) {
  const auto value = number(text);
  if (!value || *value != std::floor(*value) || *value > 17179869184.0) return std::nullopt;
  return Bytes{static_cast<std::uint64_t>(*value)};
}

class Reader {
 public:
  explicit Reader(std::string name) : name_(std::move(name)) {}

  void line(std::string_view text, std::size_t number_of_line) {
    line_ = number_of_line;
    const auto words = text::split_words(text);
    if (words.empty()) {
      if (!matrix_rows_seen_) return;
      columns_.clear();
      return;
    }
    if (gdsio(text) || perftest(text, words) || osu(text, words) || nccl(text, words)) return;
    matrix(text, words);
  }

  std::vector<Figure> figures;

 private:
  Figure figure(std::string tool) const {
    Figure one;
    one.tool = std::move(tool);
    one.line = line_;
    return one;
  }

  bool perftest(std::string_view text, const std::vector<std::string_view>& words) {
    if (has(text, "use_cuda") || has(text, "initializing CUDA") || has(text, "cuMemAlloc"))
      gpu_memory_ = !has(text, "cuMemAllocManaged");
    for (const auto& [name, operation] :
         {std::pair("RDMA_Write", Operation::write), std::pair("RDMA_Read", Operation::read),
          std::pair("Send ", Operation::send)}) {
      if (!has(text, name) || !has(text, " Test")) continue;
      perftest_ = figure(
          fmt::format("ib_{}_{}", to_string(operation), has(text, "Latency") ? "lat" : "bw"));
      perftest_->operation = operation;
      perftest_->bidirectional = has(text, "Bidirectional");
      perftest_->gpu_memory = gpu_memory_;
      columns_.clear();
      unit_ = 0;
      return true;
    }
    if (!perftest_) return false;
    if (has(text, "Number of qps")) {
      if (const auto count = text::int_after(text, ":"); count && *count >= 1 && *count <= 65536)
        perftest_->queue_pairs = *count;
      return true;
    }
    if (words[0] == "#bytes") {
      unit_ = has(text, "BW average[Gb/sec]")   ? 1.25e8
              : has(text, "BW average[MB/sec]") ? mebi
              : has(text, "t_typical[usec]")    ? 1e-6
                                                : 0;
      return unit_ > 0;
    }
    const auto size = size_of(words[0]);
    if (unit_ == 0 || !size || words.size() < 4) return false;
    const bool latency = unit_ < 1;
    const auto value = number(words[latency ? (words.size() > 4 ? 4 : 3) : 3]);
    if (!value) return false;
    Figure one = *perftest_;
    one.line = line_;
    one.size = *size;
    if (!one.gpu_memory) one.gpu_memory = gpu_memory_.value_or(false);
    if (latency) one.latency = Duration{*value * unit_};
    else one.bandwidth = Bandwidth{*value * unit_};
    figures.push_back(one);
    return true;
  }

  bool osu(std::string_view text, const std::vector<std::string_view>& words) {
    if (has(text, "# OSU")) {
      osu_ = figure("OSU");
      osu_->operation = Operation::send;
      osu_->bidirectional = has(text, "Bi-Directional");
      osu_->gpu_memory =
          has(text, "CUDA") || has(text, "ROCM") ? std::optional(true) : std::nullopt;
      osu_unit_ = 0;
      perftest_.reset();
      return true;
    }
    if (!osu_) return false;
    if (has(text, "Buffer on DEVICE")) osu_->gpu_memory = true;
    if (words[0] == "#" && words.size() > 1 && words[1] == "Size") {
      osu_unit_ = has(text, "Bandwidth (MB/s)") ? 1e6 : has(text, "Latency (us)") ? 1e-6 : 0;
      return true;
    }
    const auto size = size_of(words[0]);
    const auto value = words.size() >= 2 ? number(words[1]) : std::nullopt;
    if (osu_unit_ == 0 || !size || !value) return false;
    Figure one = *osu_;
    one.line = line_;
    one.size = *size;
    if (!one.gpu_memory) one.gpu_memory = false;
    if (osu_unit_ < 1) one.latency = Duration{*value * osu_unit_};
    else one.bandwidth = Bandwidth{*value * osu_unit_};
    figures.push_back(one);
    return true;
  }

  /// Columns: size count type redop root time algbw busbw #wrong, for out of place. busbw is what
  /// each rank sends per direction.
  bool nccl(std::string_view text, const std::vector<std::string_view>& words) {
    if (has(text, "algbw") && has(text, "busbw")) {
      nccl_ = true;
      osu_.reset();
      perftest_.reset();
      return true;
    }
    if (!nccl_ || words.size() < 8) return false;
    const auto size = size_of(words[0]);
    const auto count = size_of(words[1]);
    const bool typed = words[2].find_first_of("0123456789") == std::string_view::npos ||
                       words[2].starts_with("float") || words[2].starts_with("int") ||
                       words[2].starts_with("uint") || words[2].starts_with("bfloat");
    const auto busbw = number(words[7]);
    if (!size || !count || !typed || !busbw) return false;
    Figure one = figure("nccl-tests");
    one.operation = Operation::send;
    one.size = *size;
    one.bandwidth = Bandwidth{*busbw * 2e9};
    one.bidirectional = true;
    one.gpu_memory = true;
    figures.push_back(one);
    return true;
  }

  /// IoType: READ XferType: GPUD Threads: 4 DataSetSize: ... IOSize: 1024(KiB) Throughput: 6.62
  /// GiB/sec, ...
  bool gdsio(std::string_view text) {
    const auto throughput = text::after(text, "Throughput: ");
    if (!has(text, "XferType:") || !throughput) return false;
    const auto words = text::split_words(*throughput);
    const auto value = words.empty() ? std::nullopt : number(words[0]);
    const auto kib = text::int_after(text, "IOSize: ");
    if (!value || !kib || *kib < 1) return false;
    Figure one = figure("gdsio");
    one.operation = gdsio_reads(first_word(text, "IoType:")) ? Operation::read : Operation::write;
    one.size = Bytes{static_cast<std::uint64_t>(*kib) * 1024};
    one.bandwidth =
        Bandwidth{*value * (words.size() > 1 && words[1].starts_with("GiB") ? gibi : mebi)};
    one.threads = gdsio_threads(text);
    gdsio_way(first_word(text, "XferType:"), one);
    figures.push_back(one);
    return true;
  }

  bool gdsio_reads(std::string_view type) const {
    const bool read = type == "READ" || type == "RANDREAD";
    if (!read && type != "WRITE" && type != "RANDWRITE")
      fail(
          fmt::format("IoType \"{}\" of gdsio: allowed are READ, WRITE, RANDREAD and RANDWRITE; "
                      "give the line as gdsio printed it",
                      text::printable(type, 40)));
    return read;
  }

  int gdsio_threads(std::string_view text) const {
    const std::string_view word = first_word(text, "Threads:");
    const auto threads = text::whole_int(word);
    if (!threads || *threads < 1 || *threads > 65536)
      fail(
          fmt::format("Threads \"{}\" of gdsio: 1 to 65536, as many as -w gave it; what the "
                      "throughput means depends on them",
                      text::printable(word, 40)));
    return *threads;
  }

  /// gdsio's -x 0 to 7: by GPUDirect Storage, without a GPU, or through host memory.
  void gdsio_way(std::string_view type, Figure& one) const {
    static constexpr std::array<std::string_view, 4> direct{"GPUD", "GPUD_ASYNC", "GPU_BATCH",
                                                            "GPU_BATCH_STREAM"};
    static constexpr std::array<std::string_view, 3> bounced{"CPU_GPU", "CPU_ASYNC_GPU",
                                                             "CPU_CACHED_GPU"};
    const bool gds = std::find(direct.begin(), direct.end(), type) != direct.end();
    const bool staged = std::find(bounced.begin(), bounced.end(), type) != bounced.end();
    if (!gds && !staged && type != "CPUONLY")
      fail(fmt::format(
          "XferType \"{}\" of gdsio: it is not known which path the data took; known are {} "
          "(GPUDirect Storage), {} (through host memory) and "
          "CPUONLY; leave the line out, or measure with -x 0, 1 or 2",
          text::printable(type, 40), fmt::join(direct, ", "), fmt::join(bounced, ", ")));
    one.gpu_memory = gds || staged;
    if (*one.gpu_memory) one.peer_to_peer = gds;
  }

  static std::string_view first_word(std::string_view text, std::string_view key) {
    const auto rest = text::after(text, key);
    const auto words = rest ? text::split_words(*rest) : std::vector<std::string_view>();
    return words.empty() ? std::string_view() : words.front();
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError(fmt::format("{}: line {}: {}", name_, line_, what));
  }

  /// Matrices of GPUs: p2pBandwidthLatencyTest and nvbandwidth.
  void matrix(std::string_view text, const std::vector<std::string_view>& words) {
    if (has(text, "Matrix (GB/s)") || has(text, "Matrix (us)")) {
      begin_matrix("p2pBandwidthLatencyTest", has(text, "(us)"), has(text, "Bidirectional"));
      matrix_->peer_to_peer = has(text, "P2P=Enabled")    ? std::optional(true)
                              : has(text, "P2P=Disabled") ? std::optional(false)
                                                          : std::nullopt;
      return;
    }
    if (has(text, "memcpy") && has(text, "GPU(row)") && has(text, "GPU(column)") &&
        has(text, "(GB/s)")) {
      begin_matrix("nvbandwidth", false, has(text, "bidirectional") || has(text, "<->"));
      matrix_->operation =
          has(text, "<-") && !has(text, "<->") ? Operation::read : Operation::write;
      return;
    }
    if (!matrix_) return;
    if (words[0] == "CPU") {  // the second half of the latency matrices is the CPU's view
      matrix_.reset();
      return;
    }
    const bool head = words[0] == "D\\D" || words[0] == "GPU" || columns_.empty();
    std::vector<int> all;
    for (std::size_t i = words[0] == "D\\D" || words[0] == "GPU" ? 1 : 0; i < words.size(); ++i)
      if (const auto column = text::whole_int(words[i]); column && *column >= 0 && *column < 1024)
        all.push_back(*column);
    if (head && !all.empty() &&
        all.size() + (words[0] == "D\\D" || words[0] == "GPU" ? 1 : 0) == words.size()) {
      columns_ = all;
      return;
    }
    const auto row = text::whole_int(words[0]);
    if (!row || *row < 0 || words.size() != columns_.size() + 1) return;
    matrix_rows_seen_ = true;
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const auto value = number(words[i + 1]);
      if (!value || *row == columns_[i]) continue;
      Figure one = *matrix_;
      one.line = line_;
      one.gpus = one.operation == Operation::read ? std::pair(columns_[i], *row)
                                                  : std::pair(*row, columns_[i]);
      if (latency_matrix_) one.latency = Duration{*value * 1e-6};
      else one.bandwidth = Bandwidth{*value * 1e9};
      figures.push_back(one);
    }
  }

  void begin_matrix(std::string tool, bool latency, bool bidirectional) {
    matrix_ = figure(std::move(tool));
    // The tools' own sizes: 40 MB of integers, 512 MiB, and a few bytes for latency.
    matrix_->size = latency                          ? Bytes{16}
                    : matrix_->tool == "nvbandwidth" ? Bytes{512U << 20U}
                                                     : Bytes{40'000'000};
    matrix_->bidirectional = bidirectional;
    matrix_->gpu_memory = true;
    latency_matrix_ = latency;
    columns_.clear();
    matrix_rows_seen_ = false;
  }

  std::string name_;
  std::size_t line_ = 0;
  std::optional<bool> gpu_memory_;
  std::optional<Figure> perftest_, osu_, matrix_;
  double unit_ = 0;
  double osu_unit_ = 0;
  bool nccl_ = false;
  bool latency_matrix_ = false;
  bool matrix_rows_seen_ = false;
  std::vector<int> columns_;
};

}  // namespace

std::vector<Figure> read_figures(std::string_view text, const std::string& name) {
  Reader reader(name);
  const auto lines = text::lines(text);
  for (std::size_t i = 0; i < lines.size(); ++i)
    reader.line(text::without_escapes(lines[i]), i + 1);
  if (reader.figures.empty())
    throw InputError(
        fmt::format("{}: no figure in it; gdr reads what ib_write_bw and its kind, nccl-tests, "
                    "OSU's tests, nvbandwidth, p2pBandwidthLatencyTest and gdsio print",
                    name));
  if (reader.figures.size() > 10'000)
    throw InputError(fmt::format("{}: more than 10000 figures", name));
  return reader.figures;
}

}  // namespace gdr::study
