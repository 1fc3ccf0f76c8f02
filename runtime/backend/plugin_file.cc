// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/plugin_file.h"

#include <dlfcn.h>

#include <cstring>
#include <filesystem>
#include <system_error>

namespace hv::runtime {
namespace {

namespace fs = std::filesystem;

Status unusable(const std::string& what, const std::string& path, const std::string& reason) {
  return {StatusCode::kUnsupported,
          "use " + what + ": " + path + ": " + reason + "; try: install hvrun anew, as a whole"};
}

}  // namespace

std::string plugin_path(const std::string& name) {
  Dl_info info{};
  if (::dladdr(reinterpret_cast<const void*>(&open_plugin), &info) == 0 ||
      info.dli_fname == nullptr)
    return name;
  std::error_code trouble;
  const fs::path own = fs::canonical(info.dli_fname, trouble);
  const fs::path beside = own.parent_path() / name;
  const fs::path in_lib = own.parent_path().parent_path() / "lib" / name;
  return (!fs::exists(beside, trouble) && fs::exists(in_lib, trouble) ? in_lib : beside).string();
}

Status open_plugin(const std::string& what, const std::string& path, const char* symbol, int flags,
                   const void** entry) {
  void* const opened = ::dlopen(path.c_str(), RTLD_NOW | flags);
  if (opened == nullptr) {
    const char* const words = ::dlerror();
    std::string reason = words != nullptr ? words : "cannot be opened";
    if (reason.starts_with(path + ": ")) reason.erase(0, path.size() + 2);
    return unusable(what, path, reason);
  }
  const void* const found = ::dlsym(opened, symbol);
  if (found == nullptr) return unusable(what, path, "it is not hvrun's");
  const char* build = nullptr;
  std::memcpy(&build, found, sizeof build);
  if (std::strcmp(build, kPluginBuild) != 0)
    return unusable(what, path,
                    std::string("it is of hvrun ") + build + ", and libhvrun is " + kPluginBuild);
  *entry = found;
  return Status::success();
}

}  // namespace hv::runtime
