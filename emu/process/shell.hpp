#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace gdr::emu {

/// A word that a shell reads back as `text`; in quotes only where it needs them.
std::string shell_word(std::string_view text);

/// Words with spaces between.
std::string shell_line(const std::vector<std::string>& words);

}  // namespace gdr::emu
