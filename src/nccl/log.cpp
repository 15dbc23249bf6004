#include "src/nccl/log.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "src/common/error.hpp"
#include "src/common/terminal_text.hpp"
#include "src/nccl/history.hpp"

namespace gdr::nccl {
namespace {

std::string_view route_of(std::string_view word) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 13> routes{
      {{"LOC", "the same device"},
       {"NVL", "NVLink"},
       {"NVB", "NVLink through another GPU"},
       {"C2C", "NVLink-C2C of the CPU"},
       {"PIX", "one PCIe switch"},
       {"PXB", "several PCIe switches"},
       {"P2C", "NVLink-C2C and the CPU's PCIe"},
       {"PXN", "NVLink to a GPU beside the NIC"},
       {"PHB", "the CPU of one NUMA node"},
       {"NODE", "host bridges of one NUMA node"},
       {"SYS", "the link between sockets"},
       {"SOC", "the link between sockets"},
       {"NET", "the network"}}};
  for (const auto& [name, what] : routes)
    if (name == word) return what;
  return "no route";
}

struct Comparison {
  int distance = 0;
  std::string sign;
  int level = 0;
};

std::optional<Comparison> comparison_in(std::string_view text) {
  const auto rest = text::after(text, "(distance ");
  if (!rest) return std::nullopt;
  const auto words = text::split_words(*rest);
  if (words.size() < 3) return std::nullopt;
  const auto distance = text::whole_int(words[0]);
  const auto level = text::leading_int(words[2]);
  if (!distance || !level || words[1].find_first_not_of("<>=") != std::string_view::npos)
    return std::nullopt;
  return Comparison{*distance, std::string(words[1]), *level};
}

/// The first version of each range with the same numbers.
constexpr std::array<std::pair<int, std::string_view>, 9> ranges{{{20300, "2.3"},
                                                                  {20400, "2.4 to 2.5"},
                                                                  {20600, "2.6 to 2.7"},
                                                                  {20800, "2.8 to 2.11"},
                                                                  {21200, "2.12 to 2.17"},
                                                                  {21800, "2.18 to 2.25"},
                                                                  {22600, "2.26"},
                                                                  {22700, "2.27.0 to 2.27.4"},
                                                                  {22705, "2.27.5 and newer"}}};

std::string of_all_versions(const Comparison& c) {
  std::vector<std::string> fits;
  for (const auto& [version, name] : ranges) {
    if (strict_comparison(version) != (c.sign == "<" || c.sign == ">=")) continue;
    const auto distance = path_word(version, c.distance);
    const auto level = path_word(version, c.level);
    if (distance && level)
      fits.push_back(fmt::format("{} {} {} in {}", *distance, c.sign, *level, name));
  }
  return fits.empty() ? "no version has these numbers" : fmt::format("{}", fmt::join(fits, "; "));
}

std::string explain_distance(const Comparison& c, bool enabled, const std::string& version,
                             Explained& line) {
  const std::string used = fmt::format("GPUDirect RDMA is {}.", enabled ? "used" : "not used");
  if (!version.empty() && !known_version(version))
    return fmt::format(
        "{0} NCCL {3} is not a known version ({4}), so the meaning of the distances {1} and {2} is "
        "unknown. In known versions they are: {5}.",
        used, c.distance, c.level, version, known_versions, of_all_versions(c));
  if (version.empty())
    return fmt::format(
        "{} What the distances {} and {} mean depends on NCCL's version, which the log does not "
        "say: "
        "{}.",
        used, c.distance, c.level, of_all_versions(c));
  const int number = version_number(version);
  const auto distance = path_word(number, c.distance);
  const auto level = path_word(number, c.level);
  if (!distance || !level)
    return fmt::format("NCCL {} has no distance with this number: the log is from another version.",
                       version);
  line.distance = *distance;
  const std::string allows = strict_comparison(number)
                                 ? fmt::format("the level {} allows only shorter distances", *level)
                                 : fmt::format("the level allows {}", *level);
  if (enabled)
    return fmt::format("GPUDirect RDMA is used: the path goes over {} ({}), and {}.",
                       route_of(*distance), *distance, allows);
  std::string meaning = fmt::format(
      "Distance {} {} {}: the path goes over {} ({}), and {}. Data is staged through host memory.",
      c.distance, c.sign, c.level, route_of(*distance), *distance, allows);
  const std::string_view variable = number < 20400 ? "NCCL_IB_GDR_LEVEL" : "NCCL_NET_GDR_LEVEL";
  if (number >= 20600)
    meaning += fmt::format(" {}={} would enable it, but it may not be faster over the CPU.",
                           variable, *distance);
  else
    meaning += fmt::format(" {}={} would enable it, but it may not be faster over the CPU.",
                           variable, c.distance + 1);
  return meaning;
}

/// A line of `gdr transfer` (docs/transport.md): like NCCL's, but with numbers of its own and the
/// path at the end.
bool explain_transport(std::string_view text, const Comparison& c, bool enabled, Explained& line) {
  static constexpr std::array<std::string_view, 5> words{"LOC", "PIX", "PXB", "PHB", "SYS"};
  const auto rest = text::after(text, "), path ");
  const auto size = static_cast<int>(words.size());
  if (!rest || c.distance < 0 || c.distance >= size || c.level < 0 || c.level >= size) return false;
  const std::string_view distance = words.at(static_cast<std::size_t>(c.distance));
  const std::string_view level = words.at(static_cast<std::size_t>(c.level));
  const auto colon = rest->find(':');
  const std::string path = text::printable(rest->substr(0, colon), 20);
  const std::string reason = colon == std::string_view::npos
                                 ? ""
                                 : text::printable(text::trim(rest->substr(colon + 1)), 120);
  line.distance = distance;
  const bool near = c.distance <= c.level;
  std::string why = near ? "is near enough" : "is too far";
  if (enabled && !near)
    why += ", and GPUDirect RDMA is used nevertheless: one end asked for this path by name";
  else if (enabled) why += ": GPUDirect RDMA is used";
  else if (near) why += fmt::format(", but the path is {} for another reason: {}", path, reason);
  else why += fmt::format(": the path is {}", path);
  line.meaning = fmt::format(
      "This is a line of gdr transfer, whose numbers are LOC 0, PIX 1, PXB 2, PHB 3, SYS 4. For "
      "the level {} the distance {} {}.",
      level, distance, why);
  return true;
}

std::string word_after(std::string_view text, std::string_view key) {
  const auto rest = text::after(text, key);
  if (!rest) return {};
  const auto words = text::split_words(*rest);
  std::string word = words.empty() ? std::string() : text::printable(words.front(), 40);
  while (word.ends_with(',') || word.ends_with(')')) word.pop_back();
  return word;
}

bool explain(std::string_view text, const std::string& version, Explained& line) {
  const bool gdr_line = text.find("GPU Direct RDMA") != std::string_view::npos;
  const bool enabled = text.find("RDMA Enabled") != std::string_view::npos ||
                       text.find("RDMA enabled") != std::string_view::npos;
  if (const auto c = comparison_in(text); gdr_line && c) {
    line.gdr = enabled;
    line.gpu = word_after(text, "for GPU ");
    if (line.gpu.empty()) line.gpu = word_after(text, "(rank ");
    line.net = word_after(text, "HCA ");
    if (line.net.empty()) line.net = word_after(text, "- NET/");
    if (!explain_transport(text, *c, enabled, line))
      line.meaning = explain_distance(*c, enabled, version, line);
    return true;
  }
  if (gdr_line && text.find("for HCA") != std::string_view::npos) {
    line.gdr = enabled;
    line.net = word_after(text, "for HCA ");
    line.meaning =
        enabled
            ? "The NIC can register GPU memory: nvidia-peermem or dma-buf is available."
            : "The NIC cannot register GPU memory: neither nvidia-peermem nor dma-buf was found. "
              "Load nvidia-peermem, or use Linux 5.12, CUDA 11.7 and the open kernel modules.";
    return true;
  }
  if (text.find("via NET/") != std::string_view::npos) {
    const bool gdr = text.find("GDRDMA") != std::string_view::npos;
    line.gdr = gdr;
    line.net = word_after(text, "via NET/");
    line.meaning = gdr ? "This channel moves data with GPUDirect RDMA."
                       : "This channel stages data through host memory: the line does not end with "
                         "/GDRDMA, so GPUDirect RDMA is not used.";
    if (text.find("(PCI)") != std::string_view::npos)
      line.meaning += " GPU memory is mapped over PCIe.";
    return true;
  }
  if (text.find("DMA-BUF is available on GPU device") != std::string_view::npos) {
    line.meaning = "The GPU's memory can be exported as dma-buf: nvidia-peermem is not needed.";
    return true;
  }
  if (text.find("PXN") != std::string_view::npos &&
      text.find("set by environment") == std::string_view::npos) {
    line.meaning =
        "PXN: data goes over NVLink to a GPU beside the NIC, which uses GPUDirect RDMA for it.";
    return true;
  }
  return false;
}

std::string_view after_info(std::string_view text) {
  const auto at = text.find("NCCL INFO ");
  if (at != std::string_view::npos) return text::trim(text.substr(at + 10));
  return text.find("GPU Direct RDMA") != std::string_view::npos ? text::trim(text)
                                                                : std::string_view();
}

}  // namespace

Log read_log(std::string_view text, const std::string& name, const std::string& version) {
  Log log;
  log.version = version;
  if (!version.empty()) (void)version_number(version);
  const auto lines = text::lines(text);
  bool any = false;
  for (const std::string_view line : lines) {
    any = any || line.find("NCCL") != std::string_view::npos ||
          line.find("GPU Direct RDMA") != std::string_view::npos;
    const auto value = text::after(line, "NCCL version ");
    if (!value || !log.version.empty()) continue;
    const std::string found(value->substr(0, value->find_first_not_of("0123456789.")));
    if (found.size() >= 3 && found[0] != '.' && found.find('.') != std::string::npos &&
        found.size() <= 12)
      log.version = found;
  }
  if (!any)
    throw InputError(
        fmt::format("{}: it has no line of NCCL; set NCCL_DEBUG=INFO to get them", name));
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string plain = text::without_escapes(lines[i]);
    const std::string_view info = after_info(plain);
    if (info.empty()) continue;
    if (info.find("set by environment to") != std::string_view::npos)
      log.settings.push_back(text::printable(info, 120));
    Explained line{i + 1, text::printable(info, 200), {}, {}, {}, {}, {}};
    if (explain(info, log.version, line)) log.lines.push_back(std::move(line));
  }
  return log;
}

}  // namespace gdr::nccl
