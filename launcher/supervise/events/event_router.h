// EventRouter: applies each message of an agent to the Job and hands it to the part that it
// concerns. Never waits. io_context thread only.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>

#include "launcher/supervise/events/job_events.h"
#include "launcher/supervise/events/missing_ranks.h"
#include "launcher/supervise/job.h"

namespace hv::launcher {

// The parts of the supervisor that messages are handed to.
struct RouterSinks {
  std::function<bool(wire::Output)> output;  // false: more than the rank had credit for
  std::function<bool(wire::Result)> result;  // false: not requested, or beyond its credit
  std::function<void(std::uint32_t bytes)> input_accepted;
  std::function<void(const std::string& text)> note;
  std::function<void(const wire::FenceStalled&)> fence_stalled;
  std::function<void(const wire::TensorStalled&)> tensor_stalled;
  std::function<void(const wire::CallStalled&)> call_stalled;
  std::function<void()> both_mpis_begun;  // some ranks began MPI by PMIx, some by PMI-1
};

class EventRouter {
 public:
  EventRouter(Job& job, RouterSinks sinks) : job_(job), sinks_(std::move(sinks)), missing_(job) {}

  // Frames of a link that the host no longer has are dropped. A frame that breaks the protocol ends
  // the link, and the host is lost.
  void handle(const FrameArrived& event);
  void handle(const LinkEnded& event);

 private:
  // False: the agent broke the protocol.
  bool route(Host& host, const Frame& frame);
  bool route_answer(Host& host, const Frame& frame);
  bool route_run(Host& host, const Frame& frame);
  bool route_wait(Host& host, const Frame& frame);
  bool greet(Host& host, wire::Hello hello);
  bool start_ranks(Host& host, const wire::Started& started);
  bool receive_output(const Host& host, const Frame& frame);
  bool receive_result(const Host& host, const Frame& frame);
  bool receive_exit(Host& host, const Frame& frame);
  void end_rank(Host& host, const wire::Exited& exited);
  bool receive_steps(const Host& host, const Frame& frame);
  bool pass_fence(const Host& host, wire::FenceIn in);
  bool name_lost(const Host& host, const wire::RankLost& lost);
  bool receive_stacks(Host& host, const Frame& frame);
  void become_empty(Host& host, const wire::Empty& empty);
  void end_unrequested(Host& host, const std::string& reason, const UnrequestedEnd& end = {});
  void lose(Host& host, const std::string& reason);

  Job& job_;
  RouterSinks sinks_;
  MissingRanks missing_;
  std::set<std::uint32_t> mpi_epochs_;                             // that ranks have begun
  std::map<std::uint32_t, std::set<std::uint32_t>> named_losses_;  // by reporting rank; each once
};

}  // namespace hv::launcher
