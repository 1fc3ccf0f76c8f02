// SPDX-License-Identifier: Apache-2.0
#include "src/contract/runtime_knobs.h"

namespace hv {

const std::vector<Knob>& runtime_knobs() {
  static const std::vector<Knob> table{
      {"HVRUN_LOG_LEVEL", KnobType::kChoice, "warn", "How much a rank says on stderr.",
       "HOROVOD_LOG_LEVEL", "error|warn|info|debug|trace", 0, INT64_MAX,
       "warning=warn|fatal=error"},
      {"HVRUN_FUSION_THRESHOLD", KnobType::kBytes, "64M",
       "Tensors are fused into buckets of at most so many bytes.", "HOROVOD_FUSION_THRESHOLD"},
      {"HVRUN_CACHE_CAPACITY", KnobType::kInteger, "4096",
       "Tensors known by number, so that ranks agree by 8 bytes each.", "HOROVOD_CACHE_CAPACITY",
       "", 0, 1 << 20},
      {"HVRUN_STALL_SECONDS", KnobType::kSeconds, "60",
       "A tensor that some ranks miss for so long is warned about; 0: never.",
       "HOROVOD_STALL_CHECK_TIME_SECONDS"},
      {"HVRUN_DETERMINISTIC", KnobType::kBool, "0",
       "The same bits in every run, whatever the fusion and the order of arrival."},
      {"HVRUN_BACKEND", KnobType::kChoice, "",
       "Who carries out collectives; unset: the first that can.", "", "native"},
  };
  return table;
}

}  // namespace hv
