#include "emu/image/kernel_image.hpp"

#include <archive.h>
#include <archive_entry.h>

#include <cstdint>
#include <memory>
#include <string_view>

namespace gdr::emu {
namespace {

// The setup header of Linux's x86 boot protocol 2.08.
constexpr std::size_t setup_sectors = 0x1f1, header_magic = 0x202, payload_offset = 0x248,
                      payload_length = 0x24c;
constexpr std::size_t header_end = 0x250, sector = 512;

std::uint32_t number_at(std::string_view text, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t byte = 4; byte > 0; --byte)
    value = value << 8U | static_cast<unsigned char>(text[at + byte - 1]);
  return value;
}

std::string_view payload_of(std::string_view image) {
  if (image.size() < header_end || image.substr(header_magic, 4) != "HdrS") return {};
  const std::size_t sectors =
      image[setup_sectors] == 0 ? 4 : static_cast<unsigned char>(image[setup_sectors]);
  const std::size_t begin = (sectors + 1) * sector + number_at(image, payload_offset);
  std::size_t length = number_at(image, payload_length);
  if (begin > image.size() || length > image.size() - begin || length < 4) return {};
  // The build appends the unpacked size, except to gzip, which already stores it.
  if (image.substr(begin, 2) != "\x1f\x8b") length -= 4;
  return image.substr(begin, length);
}

std::string unpacked(std::string_view packed) {
  const std::unique_ptr<archive, decltype(&archive_read_free)> reader(archive_read_new(),
                                                                      archive_read_free);
  archive_read_support_filter_all(reader.get());
  archive_read_support_format_raw(reader.get());
  archive_entry* entry = nullptr;
  if (archive_read_open_memory(reader.get(), packed.data(), packed.size()) != ARCHIVE_OK ||
      archive_read_next_header(reader.get(), &entry) != ARCHIVE_OK)
    return {};
  std::string content;
  constexpr std::size_t block = 1U << 20U;
  const auto buffer = std::make_unique<char[]>(block);
  la_ssize_t got = 0;
  while ((got = archive_read_data(reader.get(), buffer.get(), block)) > 0)
    content.append(buffer.get(), static_cast<std::size_t>(got));
  return got == 0 ? content : std::string();
}

/// True if there is a Xen note with the 32-bit entry point (type 18).
bool starts_by_pvh(std::string_view elf) {
  const std::string_view tail("\x12\0\0\0Xen\0", 8);
  for (std::size_t at = elf.find(tail); at != std::string_view::npos; at = elf.find(tail, at + 1))
    if (at >= 8 && number_at(elf, at - 8) == 4 &&
        (number_at(elf, at - 4) == 4 || number_at(elf, at - 4) == 8))
      return true;
  return false;
}

}  // namespace

std::string unpacked_kernel(const std::string& image) {
  std::string elf = unpacked(payload_of(image));
  return elf.starts_with(
             "\x7f"
             "ELF") &&
                 starts_by_pvh(elf)
             ? elf
             : std::string();
}

}  // namespace gdr::emu
