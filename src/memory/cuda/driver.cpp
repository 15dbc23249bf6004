#include "src/memory/cuda/driver.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "src/common/error.hpp"

namespace gdr::memory::cuda {

void Driver::Close::operator()(void* handle) const { dlclose(handle); }

Driver::Driver(const std::string& library)
    : handle_(dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL)) {
  if (handle_ == nullptr)
    throw InputError(fmt::format("cuda memory: {}; it comes with NVIDIA's driver", dlerror()));
  const auto find = [&](auto& member, const char* name, bool needed) {
    member =
        reinterpret_cast<std::remove_reference_t<decltype(member)>>(dlsym(handle_.get(), name));
    if (member == nullptr && needed)
      throw InputError(
          fmt::format("cuda memory: {} has no {}; CUDA 11.0 or newer is needed", library, name));
  };
#define GDR_CUDA_FIND(member, name, signature) find(member, #name, true);
#define GDR_CUDA_FIND_OPTIONAL(member, name, signature) find(member, #name, false);
  GDR_CUDA_CALLS(GDR_CUDA_FIND)
  GDR_CUDA_OPTIONAL_CALLS(GDR_CUDA_FIND_OPTIONAL)
#undef GDR_CUDA_FIND
#undef GDR_CUDA_FIND_OPTIONAL
}

std::string Driver::name_of(Error error) const {
  const char* name = nullptr;
  if (error_name(error, &name) != success || name == nullptr)
    return fmt::format("CUDA error {}", error);
  return name;
}

}  // namespace gdr::memory::cuda
