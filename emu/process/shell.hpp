#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdr::emu {

/// A word that a shell reads back as `text`, quoted only if needed.
std::string shell_word(std::string_view text);

/// The words, separated by spaces.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace gdr::emu
