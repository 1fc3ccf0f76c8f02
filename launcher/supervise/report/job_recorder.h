// JobRecorder: writes the job's record to --summary and to the output directory's job.json.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/record/job_folder.h"
#include "launcher/record/job_record.h"
#include "launcher/supervise/report/console.h"
#include "launcher/supervise/report/summary_file.h"
#include "src/base/status.h"

namespace hv::launcher {

class JobRecorder {
 public:
  // console outlives this. Throws Error(kUsage) when --summary cannot be opened.
  JobRecorder(const JobSpec& spec, const Console& console)
      : summary_(spec.output.summary_file),
        job_file_(spec.output.output_directory),
        console_(console) {}

  // Of a job that runs or is about to be started: job.json only.
  Status write_running(const JobRecord& record) const;
  // At the end. Returns the job's exit code: a lost record counts like lost output.
  int write_end(const JobRecord& record, const LastLines& last_lines);

 private:
  SummaryFile summary_;
  const JobFile job_file_;
  const Console& console_;
};

}  // namespace hv::launcher
