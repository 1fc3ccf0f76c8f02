// What a job has left in its output folder: job.json, and the ends of what each rank wrote.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "src/base/status.h"

namespace hv::launcher {

// The record of the job in its output directory, job.json, for `hvrun explain`.
class JobFile {
 public:
  // directory empty: none, and write() does nothing.
  explicit JobFile(const std::string& directory);
  // In place of what was there, all at once: who reads it never meets half of it.
  Status write(const std::string& text) const;
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline constexpr char kRecordFile[] = "job.json";
// DIR/restart.N: the output of the job's Nth restart (--restarts). DIR itself has the first
// attempt's.
std::string restart_directory(const std::string& directory, int number);

struct JobFolder {
  std::string path;
  std::optional<std::string> record;  // job.json's text
  std::vector<std::string> earlier;   // how the attempts before that of `path` ended, in order
  std::string record_problem;         // it is there, and cannot be read
  // Each rank's own folder: rank.N of hvrun and mpirun, N of torchrun's --log-dir, in the folder or
  // below it; of several such levels and attempts the last.
  std::map<int, std::string> ranks;
  // What of a rank cannot be read, and why: "read DIR/rank.0/stderr: Permission denied".
  std::map<int, std::string> unreadable;

  // Of files that hold anything: the bounded ends.
  std::vector<std::string> last_lines(int rank) const;
};

// Where it is no job's own folder and one lies below it: that one. Of a job that was started again
// (--restarts) the folder of its last attempt, unless path is that of a restart. Throws
// Error(kUsage) when it is no folder that can be read, or nothing of a job is there, or several
// jobs lie below it.
JobFolder read_job_folder(const std::string& path);

}  // namespace hv::launcher
