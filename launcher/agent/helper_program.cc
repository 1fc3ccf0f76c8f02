// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/helper_program.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "src/base/blocking_write.h"

namespace hv::launcher {
namespace {

constexpr const char* kParents[] = {"/dev/shm", "/tmp"};
constexpr unsigned kExecutable = 0x10;  // MFD_EXEC, for kernels (6.3 on) that can forbid others

}  // namespace

bool belongs_to_agent(const std::string& program) {
  struct stat own {};
  struct stat found {};
  return ::stat("/proc/self/exe", &own) == 0 && ::lstat(program.c_str(), &found) == 0 &&
         S_ISREG(found.st_mode) && found.st_uid == own.st_uid &&
         ::access(program.c_str(), X_OK) == 0;
}

Status keep_in_memory(const std::string& name, const std::string& bytes, UniqueFd* file) {
  file->reset(::memfd_create(name.c_str(), MFD_CLOEXEC | kExecutable));
  if (!*file && errno == EINVAL) file->reset(::memfd_create(name.c_str(), MFD_CLOEXEC));
  const int failure = *file ? write_all(file->get(), bytes) : errno;
  return failure == 0 ? Status::success() : system_status("keep " + name + " in memory", failure);
}

std::string path_in_memory(const UniqueFd& file) {
  return "/proc/self/fd/" + std::to_string(file.get());
}

Status PrivateDirectory::create() {
  for (const char* parent : kParents) {
    std::string path = std::string(parent) + "/hvrun-XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) continue;  // which makes it 0700
    path_ = std::move(path);
    return Status::success();
  }
  return system_status("make a folder in /dev/shm or /tmp", errno);
}

Status PrivateDirectory::create_named(const std::string& name) {
  for (const char* parent : kParents) {
    std::string path = std::string(parent) + "/" + name;
    if (::mkdir(path.c_str(), 0700) != 0) continue;
    path_ = std::move(path);
    return Status::success();
  }
  return system_status("make a folder in /dev/shm or /tmp", errno);
}

void PrivateDirectory::remove_named(const std::string& name) {
  for (const char* parent : kParents) {
    const std::string path = std::string(parent) + "/" + name;
    struct stat found {};
    const bool is_ours = ::lstat(path.c_str(), &found) == 0 && found.st_uid == ::geteuid();
    if (is_ours && S_ISDIR(found.st_mode)) remove_tree(path);
  }
}

void PrivateDirectory::remove_tree(const std::string& path) {
  std::error_code ignored;
  if (!path.empty()) std::filesystem::remove_all(path, ignored);
}

}  // namespace hv::launcher
