// What hvrun-pmix is told of a job, and what it makes of that for PMIx.
// SPDX-License-Identifier: Apache-2.0
#include <cstring>

#include "launcher/pmix/job_map.h"
#include "src/base/text.h"
#include "tests/fuzz/fuzz.h"

using namespace hv;
using namespace hv::launcher;

namespace hv::fuzz {

std::vector<std::string> seeds() {
  return {encode(wire::PmixJob{{"space", {"a", "b"}, {0, 1, 0}, {0, 0, 1}}, 0, "/tmp/f"}),
          encode(wire::PmixJob{{"space", {"10.0.0.1", "a,b;c"}, {1, 1}, {0, 0}}, 1, "/tmp/f"})};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  wire::PmixJob job;
  if (!decode(fuzz::view(data, size), &job) || !is_well_formed(job)) return 0;
  for (const std::string& name : node_names(job.world.hosts))
    HV_CHECK(!name.empty() && name.find_first_of(",;[]:") == std::string::npos,
             "a name without a separator");
  HV_CHECK(split(process_text(job.world), ';').size() == job.world.hosts.size(), "one a host");
  InfoList infos = job_infos(job, "nodes", "ranks");
  for (std::size_t i = 0; i < infos.size(); ++i) {
    const pmix::Info& info = infos.data()[i];
    HV_CHECK(::strnlen(info.key, sizeof info.key) < sizeof info.key, "a key with an end");
    if (info.value.type != pmix::kDataArray) continue;
    const auto* array = static_cast<const pmix::DataArray*>(info.value.data.pointer);
    HV_CHECK(array->type == pmix::kInfo && array->size > 0, "infos of a rank");
  }
  return 0;
}
