// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/event_dispatch.h"

#include <utility>
#include <variant>

namespace hv::launcher {
namespace {

template <class... Handlers>
struct Overloaded : Handlers... {
  using Handlers::operator()...;
};

}  // namespace

EventDispatch::EventDispatch(Job& job, JobEvents& events, OutputFlow& output, InputFlow& input,
                             const Console& console, AbsenceReport& absence, StackInquiry& inquiry)
    : job_(job),
      events_(events),
      output_(output),
      input_(input),
      console_(console),
      router_(
          job,
          {[&output](wire::Output bytes) { return output.receive(std::move(bytes)); },
           [&output](wire::Result result) { return output.results().receive(std::move(result)); },
           [&input](std::uint32_t bytes) { input.accept(bytes); },
           [&console](const std::string& text) { console.say(text); },
           [&absence](const wire::FenceStalled& stall) { absence.fence_stalled(stall); },
           [&inquiry](const wire::TensorStalled& stall) { inquiry.add_tensor_stall(stall); },
           [&inquiry](const wire::CallStalled& stall) { inquiry.add_call_stall(stall); },
           [&absence] { absence.both_mpis_begun(); }}),
      signals_(job, events, [&input](bool was_stopped) { input.resume(was_stopped); }) {}

void EventDispatch::start() {
  events_.start([this](JobEvent event) { dispatch(std::move(event)); },
                [this] { job_.change.notify(); });
  signals_.start();
}

void EventDispatch::dispatch(JobEvent event) {
  std::visit(Overloaded{[this](const FrameArrived& arrived) { router_.handle(arrived); },
                        [this](const LinkEnded& ended) { router_.handle(ended); },
                        [this](const OutputWritten& written) { output_.handle(written); },
                        [this](const OutputFailed& failed) { output_.handle(failed); },
                        [this](const ResultWritten& written) { output_.results().handle(written); },
                        [this](const ResultFailed& failed) { output_.results().handle(failed); },
                        [this](InputRead&& read) { input_.handle(std::move(read)); },
                        [this](const InputFailed& failed) { input_.handle(failed); },
                        [this](const SignalReceived& received) { signals_.handle(received); },
                        [this](const TimeLimitReached&) {
                          job_.request_stop({StopReason::Kind::kTimeout});
                        },
                        [this](const LineLogged& logged) { console_.log(logged.line); }},
             std::move(event));
}

}  // namespace hv::launcher
