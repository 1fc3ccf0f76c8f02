// SPDX-License-Identifier: Apache-2.0
#include "launcher/record/job_folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

#include "launcher/facts/read_file.h"
#include "launcher/output/output_directory.h"
#include "launcher/output/recent_lines.h"
#include "launcher/record/end_text.h"
#include "launcher/record/record_json.h"
#include "src/base/blocking_write.h"
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

std::string cannot_be_read(const std::string& path, const std::string& reason) {
  return "read " + printable(path) + ": " + reason;
}

// Why; "": it can be, or is not there.
std::string trouble_with_file(const std::string& path) {
  struct stat status {};
  if (open_regular(path, &status)) return "";
  const int error = errno;
  if (::stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode))
    return cannot_be_read(path, "it is no regular file");
  return error == ENOENT ? "" : cannot_be_read(path, errno_text(error));
}

std::string trouble_with_rank(const std::string& folder) {
  if (::access(folder.c_str(), X_OK) != 0) return cannot_be_read(folder, errno_text(errno));
  for (const auto& names : {kErrorNames, kOutputNames})
    for (const char* name : {names[0], names[1]})
      if (std::string trouble = trouble_with_file(folder + name); !trouble.empty()) return trouble;
  return "";
}

void find_ranks(const std::string& folder, int depth, std::size_t* left,
                std::map<int, std::string>* ranks) {
  std::vector<std::string> names = names_in(folder);
  for (const std::string& name : names) {
    const auto number = parse_integer(name.rfind("rank.", 0) == 0 ? name.substr(5) : name);
    if (!number || *number < 0 || *number >= kMostRankNumber) continue;
    // One of hvrun's own by its name that cannot be looked into is one, too.
    const std::string path = folder + "/" + name;
    const bool is_shut = name[0] == 'r' && ::access(path.c_str(), X_OK) != 0 && errno == EACCES;
    if (is_shut || is_rank_folder(path)) (*ranks)[static_cast<int>(*number)] = path;
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
    folder->record_problem = "it is larger than " + format_bytes(kMostRecordBytes);
  } else {
    folder->record = read_end(path, kMostRecordBytes);
  }
}

bool is_job_folder(const std::string& path) {
  std::map<int, std::string> ranks;
  std::size_t none = 0;
  find_ranks(path, kDeepest, &none, &ranks);
  return is_there(path + "/" + kRecordFile) || !ranks.empty();
}

// Those with a job.json.
void find_jobs(const std::string& folder, int depth, std::size_t* left,
               std::vector<std::string>* jobs) {
  for (const std::string& name : names_in(folder)) {
    if (*left == 0) return;
    --*left;
    const std::string path = folder + "/" + name;
    if (is_there(path + "/" + kRecordFile))
      jobs->push_back(path);
    else if (depth < kDeepest)
      find_jobs(path, depth + 1, left, jobs);
  }
}

// From the first attempt's folder to the last one's. A restart.N of an earlier job, which another
// hvrun ran, does not count.
void follow_restarts(JobFolder* folder) {
  const std::string first = folder->path;
  if (!folder->record) return;
  auto before = record_from_json(*folder->record);
  for (int number = 1;; ++number) {
    const auto* ended = std::get_if<JobRecord>(&before);
    if (!ended || !ended->attempt.is_restarted || ended->attempt.restarts != number - 1) return;
    JobFolder next;
    next.path = restart_directory(first, number);
    read_record(&next);
    if (!next.record) return;
    auto read = record_from_json(*next.record);
    const auto* record = std::get_if<JobRecord>(&read);
    if (!record || record->attempt.restarts != number || record->hvrun != ended->hvrun) return;
    folder->path = next.path;
    folder->record = std::move(next.record);
    folder->earlier.push_back(failure_line(*ended));
    before = std::move(read);
  }
}

// The folder itself, or the only one below it that has a job's record.
std::string folder_of_job(const std::string& path) {
  if (is_job_folder(path)) return path;
  std::vector<std::string> jobs;
  std::size_t left = kMostFolders;
  find_jobs(path, 1, &left, &jobs);
  if (jobs.empty()) return path;
  if (jobs.size() == 1) return jobs[0];
  std::sort(jobs.begin(), jobs.end());
  for (std::string& job : jobs) job = printable(job);
  throw Error(ErrorKind::kUsage,
              printable(path) + " holds the output of several jobs: " + join_some(jobs),
              "name one of them");
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

JobFolder read_job_folder(const std::string& path) {
  DIR* const opened = ::opendir(path.c_str());
  if (opened == nullptr) {
    throw Error(ErrorKind::kUsage, "read the folder " + printable(path) + ": " + errno_text(errno),
                "name the folder that --output-dir has been given");
  }
  ::closedir(opened);
  JobFolder folder;
  folder.path = folder_of_job(path);
  read_record(&folder);
  follow_restarts(&folder);
  std::size_t left = kMostFolders;
  find_ranks(folder.path, 0, &left, &folder.ranks);
  for (const auto& [rank, its] : folder.ranks)
    if (std::string trouble = trouble_with_rank(its); !trouble.empty())
      folder.unreadable[rank] = std::move(trouble);
  if (!folder.record && folder.record_problem.empty() && folder.ranks.empty()) {
    throw Error(ErrorKind::kUsage,
                printable(path) + " holds no job's output: neither job.json nor rank.N/stderr",
                "name the folder that --output-dir has been given");
  }
  return folder;
}

std::string restart_directory(const std::string& directory, int number) {
  return directory + (directory.ends_with('/') ? "" : "/") + kRestartDirectory +
         std::to_string(number);
}

JobFile::JobFile(const std::string& directory)
    : path_(directory.empty() ? "" : directory + "/" + kRecordFile) {}

Status JobFile::write(const std::string& text) const {
  if (path_.empty()) return Status::success();
  const std::string doing = "write " + printable(path_, 1000), fresh = path_ + ".new";
  ::unlink(
      fresh.c_str());  // of one that was killed; what somebody has linked there is not followed
  UniqueFd file(::open(fresh.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666));
  if (!file) return system_status(doing, errno);
  int error = write_all(file.get(), text);
  file.reset();
  if (error == 0 && std::rename(fresh.c_str(), path_.c_str()) != 0) error = errno;
  if (error == 0) return Status::success();
  ::unlink(fresh.c_str());
  return system_status(doing, error);
}

}  // namespace hv::launcher
