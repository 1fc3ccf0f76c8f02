// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/job_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

#include "launcher/record/job_folder.h"
#include "src/base/blocking_write.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

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
