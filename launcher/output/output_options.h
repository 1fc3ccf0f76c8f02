// How a job's output is written, as its user and the terminals have it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/output/output_room.h"
#include "launcher/plan/job_spec.h"
#include "src/base/environment.h"

namespace hv::launcher {

OutputOptions output_options(const JobSpec& spec, const Environment& environment);

}  // namespace hv::launcher
