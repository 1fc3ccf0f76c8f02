// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/report/job_recorder.h"

#include "launcher/record/record_json.h"
#include "src/base/error.h"

namespace hv::launcher {

Status JobRecorder::write_running(const JobRecord& record) const {
  return job_file_.write(record_as_json(record, [](int) { return std::vector<std::string>(); }));
}

int JobRecorder::write_end(const JobRecord& record, const LastLines& last_lines) {
  const std::string json = record_as_json(record, last_lines);
  if (const Status written = summary_.write(json); !written.ok())
    console_.say("warning: " + written.message);
  const Status written = job_file_.write(json);
  if (written.ok()) return record.exit_code;
  console_.say_error(written.message, "make room there, or send the output elsewhere");
  return record.exit_code == 0 ? static_cast<int>(ErrorKind::kStart) : record.exit_code;
}

}  // namespace hv::launcher
