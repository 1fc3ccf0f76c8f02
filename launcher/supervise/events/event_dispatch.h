// EventDispatch: hands each JobEvent to the part of the supervisor that handles it. io_context
// thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "launcher/supervise/events/event_router.h"
#include "launcher/supervise/events/job_events.h"
#include "launcher/supervise/events/signal_watch.h"
#include "launcher/supervise/report/absence_report.h"
#include "launcher/supervise/report/console.h"
#include "launcher/supervise/stacks/stack_inquiry.h"
#include "launcher/supervise/streams/input_flow.h"
#include "launcher/supervise/streams/output_flow.h"

namespace hv::launcher {

class EventDispatch {
 public:
  // All outlive this.
  EventDispatch(Job& job, JobEvents& events, OutputFlow& output, InputFlow& input,
                const Console& console, AbsenceReport& absence, StackInquiry& inquiry);

  // From now on events are dispatched, and hvrun's signals are events.
  void start();

 private:
  void dispatch(JobEvent event);

  Job& job_;
  JobEvents& events_;
  OutputFlow& output_;
  InputFlow& input_;
  const Console& console_;
  EventRouter router_;
  SignalWatch signals_;
};

}  // namespace hv::launcher
