#pragma once

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

namespace gdr::test {

/// All .xml files below a folder, sorted.
inline std::vector<std::string> xml_files(const std::string& folder) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
    if (entry.path().extension() == ".xml") files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace gdr::test
