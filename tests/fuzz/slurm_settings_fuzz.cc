// The output of `scontrol show config`, and of `scontrol show partition`.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/slurm_settings.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::view(data, size);
  const auto grace = parse_grace_time(text);
  HV_CHECK(!grace || grace->count() >= 0, "a time, or none");
  const auto settings = parse_slurm_settings(text);
  if (!settings) return 0;
  const auto left = time_to_end(*settings, grace);
  HV_CHECK(!left || (left->count() >= 0 && left >= settings->kill_wait), "the longer of both");
  const std::string& proctrack = settings->proctrack;
  HV_CHECK(!proctrack.empty() && proctrack.size() <= 64, "a short name");
  HV_CHECK(printable(proctrack) == proctrack, "a name that can be printed");
  if (settings->kill_wait)
    HV_CHECK(settings->kill_wait->count() >= 0 && settings->kill_wait->count() <= 65535, "16 bits");
  HV_CHECK(!signals_every_process(*settings) || proctrack == "linuxproc" || proctrack == "cgroup",
           "only these plugins signal every process");
  return 0;
}
