#pragma once

#include <cstdlib>
#include <filesystem>
#include <optional>
#include <string>

namespace gdr::test {

/// The folder with published files that the project may not distribute: $GDR_SHARED_DIR, or shared/
/// next to the source tree. Tests that need it are skipped if it does not exist.
inline std::optional<std::string> shared_dir() {
  namespace fs = std::filesystem;
  if (const char* chosen = std::getenv("GDR_SHARED_DIR"); chosen != nullptr && *chosen != '\0') {
    if (fs::is_directory(chosen)) return std::string(chosen);
    return std::nullopt;
  }
#ifdef GDR_PROJECT_DIR
  const fs::path beside = fs::path(GDR_PROJECT_DIR).parent_path() / "shared";
  if (fs::is_directory(beside)) return beside.string();
#endif
  return std::nullopt;
}

inline constexpr const char* no_shared_dir = "the published files are missing: set GDR_SHARED_DIR";

}  // namespace gdr::test
