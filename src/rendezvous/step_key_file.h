// The file from which the tasks of a Slurm step have their key where there is no munge: in the home
// directory, which hosts then must share.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "src/base/environment.h"
#include "src/base/status.h"
#include "src/wire/authentication.h"

namespace hv {

// step: "JOB.STEP". Empty where HOME is not set.
std::string step_key_file(const Environment& environment, const std::string& step);

// In place of whatever lies there, readable by this user only; whole from the first moment on.
Status write_step_key(const std::string& path, const JobKey& key);

// Refuses a file that others can read or have written, and a link to one.
Status read_step_key(const std::string& path, JobKey* key);

}  // namespace hv
