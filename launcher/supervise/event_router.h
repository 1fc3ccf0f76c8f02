// What each message of an agent changes in the Job, and what it sets off. No waiting here.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "launcher/supervise/job.h"

namespace hv::launcher {

// What the router hands on: output to the output room, acknowledged input to the input forwarder.
struct RouterSinks {
  std::function<void(const wire::Output&)> output;
  std::function<void(std::uint32_t bytes)> stdin_accepted;
  std::function<void(const std::string& text)> note;
  std::function<void(const wire::FenceStalled&)> fence_stalled;
  std::function<void(const wire::TensorStalled&)> tensor_stalled;
  std::function<void()> begun_by_two_ways;  // MPI: perhaps one after the other
};

class EventRouter : public LinkObserver {
 public:
  EventRouter(Job& job, RouterSinks sinks) : job_(job), sinks_(std::move(sinks)) {}

  void on_frame(int host, const Frame& frame) override;
  void on_link_ended(int host, const std::string& reason) override;

 private:
  // False: the agent broke the protocol.
  bool route(HostState& state, int host, const Frame& frame);
  bool route_start(HostState& state, int host, const Frame& frame);
  bool route_run(HostState& state, int host, const Frame& frame);
  bool route_words(HostState& state, const Frame& frame);
  bool mpi_missed(const Frame& frame);
  bool mpi_begun(const Frame& frame);
  bool fence_stalled(const Frame& frame);
  bool tensor_stalled(int host, const Frame& frame);
  bool stacks_told(HostState& state, int host, const Frame& frame);
  void became_empty(HostState& state, int host, const wire::Empty& empty);
  void gave_up(HostState& state, int host, const std::string& reason);
  void rank_exited(HostState& state, int host, const wire::Exited& exited);
  void output_arrived(const wire::Output& output);
  void answered(HostState& state, const wire::QueryReply& reply);
  void announce_end(int rank, const std::string& words);
  void announce_death(int rank, int from_host, const std::string& reason);
  void announce_strangers();
  void look_for_missed_ranks();
  bool runs_on(std::uint32_t rank, int host) const;

  Job& job_;
  RouterSinks sinks_;
  std::vector<std::pair<int, std::string>> strangers_;               // see announce_strangers
  std::set<std::uint32_t> missed_epochs_, begun_epochs_;             // agents have told so
  std::map<std::uint32_t, std::map<int, wire::MpiEnd>> out_of_mpi_;  // see look_for_missed_ranks
  std::set<std::pair<std::uint32_t, std::uint32_t>> told_losses_;    // by whom, and who
};

}  // namespace hv::launcher
