// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/step_key_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "src/base/unique_fd.h"
#include "src/wire/agent_greeting.h"
#include "src/wire/wipe.h"

namespace hv {
namespace {

std::string key_file_context(const std::string& what) {
  return "meet the other tasks of the step: " + what;
}

}  // namespace

std::string step_key_file(const Environment& environment, const std::string& step) {
  const std::string home(environment.get_or("HOME", ""));
  return home.empty() ? "" : home + "/.hvrun-step-" + step;
}

Status write_step_key(const std::string& path, const JobKey& key) {
  const std::string fresh = path + "." + random_hex(4);
  std::string text = key_as_text(key) + "\n";
  const UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  const bool is_written =
      file && ::write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size());
  const bool is_there = is_written && ::rename(fresh.c_str(), path.c_str()) == 0;
  const int error = errno;
  wipe(&text);
  if (is_there) return Status::success();
  ::unlink(fresh.c_str());
  return system_status(key_file_context("write the key to " + path), error);
}

Status read_step_key(const std::string& path, JobKey* key) {
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (!file || ::fstat(file.get(), &info) != 0)
    return system_status(key_file_context("read the key from " + path), errno);
  if (info.st_uid != ::geteuid() || (info.st_mode & 077) != 0)
    return {StatusCode::kContract,
            key_file_context(path +
                             " is not this user's alone; take it away, and start the step again")};
  std::string text(2 * JobKey::kBytes, '\0');
  const bool is_key =
      ::read(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      parse_key(text, key);
  wipe(&text);
  return is_key ? Status::success()
                : Status{StatusCode::kContract, key_file_context(path + " holds no key")};
}

}  // namespace hv
