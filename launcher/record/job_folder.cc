// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/job_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "launcher/facts/read_file.h"
#include "launcher/output/recent_lines.h"
#include "launcher/record/record_json.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

constexpr int kDeepest = 3;  // torchrun: DIR/ID/attempt_0/N
constexpr int kMostRankNumber = 1 << 17;
constexpr std::size_t kMostFolders = 1000;  // that are looked into for ranks' own
constexpr const char* kErrorNames[] = {"/stderr", "/stderr.log"};
constexpr const char* kOutputNames[] = {"/stdout", "/stdout.log"};

// A FIFO or device in a file's place may block for ever, and says nothing twice.
UniqueFd open_regular(const std::string& path, struct stat* status) {
  UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file || ::fstat(file.get(), status) != 0 || !S_ISREG(status->st_mode)) file.reset();
  return file;
}

std::string read_end(const std::string& path, std::size_t most) {
  struct stat status {};
  const UniqueFd file = open_regular(path, &status);
  if (!file) return {};
  const auto size = static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  std::string bytes(std::min(size, most), '\0');
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got = ::pread(file.get(), bytes.data() + done, bytes.size() - done,
                                static_cast<off_t>(size - bytes.size() + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  bytes.resize(done);
  return bytes;
}

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

bool is_rank_folder(const std::string& path) {
  const auto has = [&path](const char* name) { return is_there(path + name); };
  return std::any_of(std::begin(kErrorNames), std::end(kErrorNames), has) ||
         std::any_of(std::begin(kOutputNames), std::end(kOutputNames), has);
}

void find_ranks(const std::string& folder, int depth, std::size_t* left,
                std::map<int, std::string>* ranks) {
  std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names) {
    const auto number = parse_integer(name.rfind("rank.", 0) == 0 ? name.substr(5) : name);
    if (!number || *number < 0 || *number >= kMostRankNumber) continue;
    if (is_rank_folder(folder + "/" + name))
      (*ranks)[static_cast<int>(*number)] = folder + "/" + name;
  }
  if (!ranks->empty() || depth == kDeepest) return;
  // The last attempt first: attempt_10 before attempt_9.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() > b.size() : a > b;
  });
  for (const std::string& name : names) {
    if (!ranks->empty() || *left == 0) return;
    --*left;
    find_ranks(folder + "/" + name, depth + 1, left, ranks);
  }
}

void read_record(JobFolder* folder) {
  const std::string path = folder->path + "/" + kRecordFile;
  if (!is_there(path)) return;
  struct stat status {};
  if (!open_regular(path, &status)) {
    folder->record_problem = "it cannot be read, or is no regular file";
  } else if (static_cast<std::uint64_t>(status.st_size) > kMostRecordBytes) {
    folder->record_problem = "it is larger than any job's";
  } else {
    folder->record = read_end(path, kMostRecordBytes);
  }
}

}  // namespace

std::vector<std::string> JobFolder::last_lines(int rank) const {
  const auto found = ranks.find(rank);
  if (found == ranks.end()) return {};
  RecentLines recent;
  // One byte more tells whether a line begins there.
  const auto add = [&](int stream, const auto& names) {
    for (const char* name : names)
      recent.add(stream, read_end(found->second + name, kRecentBytes + 1));
  };
  add(1, kOutputNames);
  add(2, kErrorNames);
  return recent.lines();
}

JobFolder look_at_folder(const std::string& path) {
  DIR* const opened = ::opendir(path.c_str());
  if (opened == nullptr) {
    throw Error(ErrorKind::kUsage, "read the folder " + printable(path) + ": " + errno_text(errno),
                "name the folder that --output-dir has been given");
  }
  ::closedir(opened);
  JobFolder folder;
  folder.path = path;
  read_record(&folder);
  std::size_t left = kMostFolders;
  find_ranks(path, 0, &left, &folder.ranks);
  if (!folder.record && folder.record_problem.empty() && folder.ranks.empty()) {
    throw Error(ErrorKind::kUsage,
                printable(path) + " holds no job's output: neither job.json nor rank.N/stderr",
                "name the folder that --output-dir has been given");
  }
  return folder;
}

// One that stays is told by `hvrun explain` with its own beginning and end.
void forget_record(const std::string& folder) {
  (void)::unlink((folder + "/" + kRecordFile).c_str());
}

}  // namespace hv::launcher
