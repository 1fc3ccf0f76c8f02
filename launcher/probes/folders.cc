// SPDX-License-Identifier: Apache-2.0
#include "launcher/probes/folders.h"

#include <stdlib.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>

#include "launcher/facts/cgroup_paths.h"
#include "launcher/facts/program_file.h"
#include "launcher/facts/read_file.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

std::string without_links(const std::string& path) {
  const std::unique_ptr<char, void (*)(void*)> real(::realpath(path.c_str(), nullptr), ::free);
  return real ? std::string(real.get()) : path;
}

bool lies_in(const std::string& path, const std::string& directory) {
  return directory == "/" || path == directory || path.rfind(directory + "/", 0) == 0;
}

// Why programs cannot create files there. Checks permissions only: writes nothing.
std::string why_not_writable(const std::string& directory) {
  struct stat info {};
  int error = 0;
  if (::stat(directory.c_str(), &info) != 0) {
    error = errno;
  } else if (!S_ISDIR(info.st_mode)) {
    error = ENOTDIR;
  } else if (::access(directory.c_str(), W_OK | X_OK) != 0) {
    error = errno;
  }
  return error == 0 ? ""
                    : "write to the temporary directory " + printable(directory, 1000) + ": " +
                          errno_text(error);
}

wire::FolderFacts inspect_directory(const std::string& role, const std::string& path,
                                    const std::string& problem, const std::string& mounts) {
  wire::FolderFacts facts;
  facts.role = role;
  facts.path = path;
  facts.problem = problem;
  if (!problem.empty()) return facts;
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0) facts.inode = info.st_ino;
  if (const auto mount = mount_of(without_links(path), mounts)) {
    facts.device = mount->device;
    facts.kind = mount->kind;
  }
  struct statvfs space {};
  facts.free_files = wire::kNoLimit;
  facts.free_bytes = wire::kNoLimit;
  const bool is_known = ::statvfs(path.c_str(), &space) == 0 && space.f_blocks != 0;
  if (!is_known || (space.f_flag & ST_RDONLY) != 0) return facts;
  facts.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  if (space.f_files != 0) facts.free_files = space.f_favail;
  return facts;
}

}  // namespace

// A line: "36 35 98:0 / /mnt rw,noatime master:1 - ext4 /dev/sda1 rw". The last of several mounts
// on one mount point hides the others.
std::optional<Mount> mount_of(const std::string& path, const std::string& mounts) {
  std::optional<Mount> best;
  std::size_t length = 0;
  for (const std::string& line : split(mounts, '\n')) {
    const std::vector<std::string> words = split(line, ' ');
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 3) continue;
    const std::string point = unescaped_mount(words[4]);
    if (point.size() < length || !lies_in(path, point)) continue;
    length = point.size();
    best = Mount{unescaped_mount(dash[2]), dash[1]};
  }
  return best;
}

void inspect_folders(const wire::CheckRequest& request, const Environment& environment,
                     wire::CheckReply* reply) {
  const std::string mounts = read_file("/proc/self/mountinfo").value_or("");
  for (const wire::Program& program : request.programs) {
    const auto problem = directory_problem(program);
    reply->folders.push_back(inspect_directory("working directory", program.directory,
                                               problem ? problem->what : "", mounts));
  }
  const std::string temporary = environment.get_filled("TMPDIR").value_or("/tmp");
  reply->folders.push_back(
      inspect_directory("temporary directory", temporary, why_not_writable(temporary), mounts));
}

}  // namespace hv::launcher
