// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/output_directory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

constexpr mode_t kOnlyThisUser = 0700;

[[noreturn]] void refuse(const std::string& doing, const std::string& path,
                         const std::string& reason, const char* hint) {
  throw Error(ErrorKind::kUsage, doing + " " + printable(path, 1000) + ": " + reason, hint);
}

[[noreturn]] void refuse_to_make(const std::string& path, int errno_value) {
  refuse("make the output directory", path, errno_text(errno_value),
         "give --output-dir a directory that this user can write to");
}

std::string absolute_path(const std::string& path) {
  std::error_code failure;
  const std::filesystem::path absolute = std::filesystem::absolute(path, failure);
  if (failure) refuse_to_make(path, failure.value());
  return absolute.has_filename() ? absolute.string() : absolute.parent_path().string();  // "logs/"
}

void make_directories(const std::string& path) {
  std::filesystem::path made;
  struct stat status {};
  for (const auto& part : std::filesystem::path(path)) {
    made /= part;
    if (::stat(made.c_str(), &status) == 0) continue;
    if (::mkdir(made.c_str(), kOnlyThisUser) != 0 && errno != EEXIST) refuse_to_make(path, errno);
  }
}

bool is_number(const std::string& text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string::npos;
}

// Whom files belong to that this user makes there. Shows as well that this user can.
uid_t owner_of_new_files(const std::string& directory) {
  std::string path = directory + "/.hvrun-XXXXXX";
  const UniqueFd file(::mkostemp(path.data(), O_CLOEXEC));
  if (!file) refuse_to_make(directory, errno);
  struct stat status {};
  const int failure = ::fstat(file.get(), &status) == 0 ? 0 : errno;
  ::unlink(path.c_str());
  if (failure != 0) refuse_to_make(directory, failure);
  return status.st_uid;
}

}  // namespace

OutputDirectory::OutputDirectory(std::string path) : path_(std::move(path)) {
  const std::string absolute = absolute_path(path_);
  const std::filesystem::path name = std::filesystem::path(absolute).filename();
  struct stat status {};
  const bool is_link = ::lstat(absolute.c_str(), &status) == 0 && S_ISLNK(status.st_mode);
  if (is_link && status.st_uid != ::geteuid() && status.st_uid != 0)
    refuse("write output to", path_, "it is a symbolic link of another user",
           "give --output-dir the directory that it leads to, or another one");
  make_directories(absolute);
  owner_ = owner_of_new_files(absolute);
  if (name.string().starts_with(kRestartDirectory))
    refuse_foreign_entries(std::filesystem::path(absolute).parent_path(), kRestartDirectory);
  refuse_foreign_entries(absolute, "rank.");
}

const char* OutputDirectory::reason_against(const struct stat& status) const {
  if (S_ISLNK(status.st_mode)) return "is a symbolic link";
  if (status.st_uid != ::geteuid() && status.st_uid != owner_) return "belongs to another user";
  if (S_ISDIR(status.st_mode) && (status.st_mode & (S_IWGRP | S_IWOTH)))
    return "may be changed by other users";
  return nullptr;
}

void OutputDirectory::refuse_foreign_entries(const std::string& directory, const char* name) const {
  std::error_code failure;
  std::filesystem::directory_iterator entry(directory, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    const std::string path = entry->path().string(), own_name = entry->path().filename().string();
    struct stat status {};
    if (!own_name.starts_with(name)) continue;
    const bool is_numbered = is_number(own_name.substr(std::strlen(name)));
    for (const char* inside : {"", "/stdout", "/stderr"}) {
      if (::lstat((path + inside).c_str(), &status) != 0 || S_ISCHR(status.st_mode)) continue;
      const char* reason = reason_against(status);
      const bool is_folder = S_ISDIR(status.st_mode);
      if (!reason && is_numbered && is_folder != (inside[0] == '\0'))
        reason = is_folder ? "is a directory" : "is no directory";
      if (reason)
        refuse("write output to", path + inside, std::string("it ") + reason,
               "give --output-dir another directory, or remove that");
    }
  }
  if (failure)
    refuse("read the output directory", directory, errno_text(failure.value()),
           "give --output-dir a directory that this user can read and write");
}

OutputDirectory::RankDirectory OutputDirectory::open_rank_directory(const std::string& path) const {
  RankDirectory directory;
  if (::mkdir(path.c_str(), kOnlyThisUser) != 0 && errno != EEXIST) {
    directory.error = errno;
    return directory;
  }
  UniqueFd fd(::open(path.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd || ::fstat(fd.get(), &status) != 0) {
    directory.error = errno;
  } else if (S_ISLNK(status.st_mode)) {
    directory.error = ELOOP;
    directory.detail = ", whose directory is a symbolic link";
  } else if (!S_ISDIR(status.st_mode)) {
    directory.error = ENOTDIR;
  } else if (reason_against(status)) {
    directory.error = EPERM;
    directory.detail = ", whose directory other users may change";
  } else {
    directory.fd = std::move(fd);
  }
  return directory;
}

}  // namespace hv::launcher
