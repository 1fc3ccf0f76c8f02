// Observation: what one rank's runtime lets others see of itself. Shared by all parts of an engine.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <utility>

#include "runtime/engine/counters.h"
#include "runtime/engine/timeline.h"
#include "runtime/transport/moved_bytes.h"
#include "runtime/transport/stall_report.h"
#include "runtime/transport/step_report.h"

namespace hv::runtime {

struct Observation {
  Counters counters;
  Timeline timeline;
  const std::shared_ptr<MovedBytes> moved = std::make_shared<MovedBytes>();
  const std::shared_ptr<StepReport> step_report = std::make_shared<StepReport>();
  const std::shared_ptr<StallReport> stall_report = std::make_shared<StallReport>();
};

// Never null where it is used; whoever makes a part alone gets one of its own.
using ObservationPtr = std::shared_ptr<Observation>;
inline ObservationPtr or_own(ObservationPtr given) {
  return given ? std::move(given) : std::make_shared<Observation>();
}

}  // namespace hv::runtime
