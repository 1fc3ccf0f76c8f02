// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/event_router.h"

#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/wire/frame.h"

namespace hv::launcher {
namespace {

using wire::Type;

// What wait(2) can tell of a process; more would become another exit code of hvrun, even 0.
bool is_an_end(const wire::Exited& exited) {
  return exited.by_signal ? exited.code > 0 && exited.code < 128 : exited.code <= 255;
}

bool is_mpis(std::uint32_t epoch) { return epoch == wire::kPmiEpoch || epoch == wire::kPmixEpoch; }

bool is_known(wire::MpiEnd end) { return end <= wire::MpiEnd::kNotFinalized; }

bool is_plausible(const wire::PostMortem& found) {
  return found.out_of_memory <= wire::OutOfMemory::kBesideIt &&
         found.core.size() <= wire::PostMortem::kMostWords &&
         found.memory.size() <= wire::PostMortem::kMostWords;
}

}  // namespace

bool EventRouter::runs_on(std::uint32_t rank, int host) const {
  return rank < job_.plan.ranks.size() && job_.plan.ranks[rank].host == host;
}

void EventRouter::on_frame(int host, const Frame& frame) {
  const auto index = static_cast<std::size_t>(host);
  if (index >= job_.hosts.size()) return;  // a host that the plan did not need
  if (!route(job_.hosts[index], host, frame)) {
    job_.hosts[index].link->close();
    on_link_ended(host,
                  "its agent broke the protocol (message type " + std::to_string(frame.type) + ")");
  }
  job_.change.notify();
}

bool EventRouter::route(HostState& state, int host, const Frame& frame) {
  return frame.type < static_cast<std::uint8_t>(Type::kOutput) ? route_start(state, host, frame)
                                                               : route_run(state, host, frame);
}

// Up to the ranks' start: answers to what the launch sequence asked.
bool EventRouter::route_start(HostState& state, int host, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kHello:
      return handle_message<wire::Hello>(frame, [&](wire::Hello hello) {
        // One way only: the first Ping's round trip will tell better.
        state.link->note_clock(hello.wall_clock_ns, HostLink::kUnknownRoundTrip);
        state.hello = std::move(hello);
        state.hello_at = now();
      });
    case Type::kInventoryReply:
      return handle_message<wire::InventoryReply>(
          frame, [&](wire::InventoryReply reply) { state.inventory = std::move(reply); });
    case Type::kSetUp:
      return handle_message<wire::SetUp>(
          frame, [&](wire::SetUp set_up) { state.set_up = std::move(set_up); });
    case Type::kProbeReply:
      return handle_message<wire::ProbeReply>(
          frame, [&](wire::ProbeReply probe) { state.probe = std::move(probe); });
    case Type::kCheckReply:
      return handle_message<wire::CheckReply>(
          frame, [&](wire::CheckReply reply) { state.told = std::move(reply); });
    case Type::kPairReply:
      return handle_message<wire::PairReply>(
          frame, [&](wire::PairReply reply) { state.measured = std::move(reply); });
    case Type::kWiringReply:
      return handle_message<wire::WiringReply>(frame, [&](wire::WiringReply reply) {
        if (!reply.problem.empty())
          state.problem = {printable(reply.problem, 2000), printable(reply.hint, 2000)};
        state.wiring = std::move(reply);
      });
    case Type::kReady:
      return handle_message<wire::Ready>(frame, [&](wire::Ready) { state.ready = true; });
    case Type::kProblem:
      return handle_message<wire::Problem>(frame, [&](wire::Problem problem) {
        if (!state.started) {
          state.problem = std::move(problem);
        } else if (!job_.ending) {
          state.gave_up_advice = printable(problem.hint, 2000);
          gave_up(state, host, printable(problem.what, 2000));
        }
      });
    case Type::kStarted:
      return handle_message<wire::Started>(frame, [&](const wire::Started& started) {
        state.started = true;
        for (std::size_t i = 0; i < started.pids.size() && i < state.ranks.size(); ++i) {
          job_.ranks[static_cast<std::size_t>(state.ranks[i])].pid = started.pids[i];
        }
      });
    default:
      return false;
  }
}

// While ranks run, and at their end.
bool EventRouter::route_run(HostState& state, int host, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kOutput: {
      wire::Output output;
      if (!decode(frame.payload, &output) || !runs_on(output.rank, host)) return false;
      if (output.stream != 1 && output.stream != 2) return false;
      output_arrived(output);
      return true;
    }
    case Type::kExited: {
      wire::Exited exited;
      if (!decode(frame.payload, &exited) || !runs_on(exited.rank, host) || !is_an_end(exited))
        return false;
      if (!is_known(exited.pmi_end) || !is_known(exited.pmix_end)) return false;
      if (!is_plausible(exited.found)) return false;
      // An agent has looked at what its ranks tell, and passes on nothing else.
      if (!exited.step_times.is_plausible()) return false;
      rank_exited(state, host, exited);
      return true;
    }
    case Type::kCredit:
      return handle_message<wire::Credit>(
          frame, [&](const wire::Credit& credit) { sinks_.stdin_accepted(credit.bytes); });
    case Type::kEmpty:
      return handle_message<wire::Empty>(
          frame, [&](const wire::Empty& empty) { became_empty(state, host, empty); });
    case Type::kQueryReply:
      return handle_message<wire::QueryReply>(
          frame, [&](const wire::QueryReply& reply) { answered(state, reply); });
    case Type::kFenceIn:
      return handle_message<wire::FenceIn>(frame, [&](wire::FenceIn in) {
        if (!job_.fences) return;
        if (const auto out = job_.fences->arrive(host, std::move(in))) job_.send_to_all(*out);
        announce_strangers();
        look_for_missed_ranks();
      });
    case Type::kMpiMissed:
      return mpi_missed(frame);
    case Type::kMpiBegun:
      return mpi_begun(frame);
    case Type::kRankLost:
      return handle_message<wire::RankLost>(frame, [&](const wire::RankLost& lost) {
        if (lost.rank >= job_.ranks.size() || !runs_on(lost.by, host)) return;
        if (told_losses_.emplace(lost.by, lost.rank).second)  // each has one voice
          job_.policy->named_lost(static_cast<int>(lost.rank), printable(lost.reason, 1000),
                                  static_cast<int>(lost.by));
      });
    case Type::kFenceStalled:
      return fence_stalled(frame);
    case Type::kTensorStalled:
      return tensor_stalled(host, frame);
    case Type::kStackReply:
      return stacks_told(state, host, frame);
    default:
      return route_words(state, frame);
  }
}

bool EventRouter::route_words(HostState& state, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kSilenceNoted:
      return handle_message<wire::SilenceNoted>(
          frame, [&](const wire::SilenceNoted& noted) { state.silence_noted = noted.number; });
    case Type::kNote:
      return handle_message<wire::Note>(frame, [&](const wire::Note& note) {
        sinks_.note("host " + state.target.name + ": " + printable(note.text, 2000));
      });
    default:
      return false;
  }
}

bool EventRouter::mpi_begun(const Frame& frame) {
  wire::MpiBegun begun;
  if (!decode(frame.payload, &begun) || !is_mpis(begun.epoch)) return false;
  begun_epochs_.insert(begun.epoch);
  if (begun_epochs_.size() > 1) sinks_.begun_by_two_ways();
  return true;
}

bool EventRouter::mpi_missed(const Frame& frame) {
  wire::MpiMissed missed;
  if (!decode(frame.payload, &missed) || !is_mpis(missed.epoch)) return false;
  missed_epochs_.insert(missed.epoch);
  look_for_missed_ranks();
  return true;
}

bool EventRouter::fence_stalled(const Frame& frame) {
  wire::FenceStalled stall;
  if (!decode(frame.payload, &stall) || stall.meeting > wire::Meeting::kMpi) return false;
  sinks_.fence_stalled(stall);
  return true;
}

bool EventRouter::tensor_stalled(int host, const Frame& frame) {
  wire::TensorStalled stalled;
  if (!decode(frame.payload, &stalled) || !stalled.stall.is_plausible()) return false;
  if (!runs_on(stalled.by, host)) return false;
  sinks_.tensor_stalled(stalled);
  return true;
}

bool EventRouter::stacks_told(HostState& state, int host, const Frame& frame) {
  wire::StackReply reply;
  if (!decode(frame.payload, &reply)) return false;
  for (const wire::RankStacks& told : reply.stacks)
    if (!runs_on(told.rank, host)) return false;
  state.stacks = std::move(reply);
  return true;
}

void EventRouter::became_empty(HostState& state, int host, const wire::Empty& empty) {
  state.empty = true;
  gave_up(state, host, "its agent was told to end there");
  for (const std::string& process : empty.stuck) {
    sinks_.note("warning: on host " + state.target.name + " " + printable(process) +
                " is stuck in the kernel (state D) and was not waited for");
  }
}

// Nobody had asked for the end: somebody on that host ended the agent, and with it the ranks.
void EventRouter::gave_up(HostState& state, int host, const std::string& reason) {
  if (job_.ending || state.lost || !job_.policy) return;
  state.gave_up = true;
  job_.policy->host_lost(host, reason, state.ranks, now());
}

void EventRouter::output_arrived(const wire::Output& output) {
  if (output.end) --job_.ranks[output.rank].open_streams;
  sinks_.output(output);
}

void EventRouter::rank_exited(HostState& state, int host, const wire::Exited& exited) {
  RankEnd end;
  end.rank = static_cast<int>(exited.rank);
  end.status = ExitStatus{exited.by_signal, static_cast<int>(exited.code), exited.core_dumped};
  end.signal_was_ours = exited.signal_was_ours;
  end.time_ns = state.link->corrected(exited.wall_clock_ns);
  end.left_unannounced = exited.left_unannounced;
  end.never_joined = exited.never_joined;
  if (exited.left_ns != 0) end.left_ns = state.link->corrected(exited.left_ns);
  end.found = exited.found;
  job_.ranks[exited.rank].ended = true;
  job_.ranks[exited.rank].step_times = exited.step_times;
  job_.policy->rank_ended(end, now());
  if (!end.failed()) {
    for (const auto& [epoch, mpi_end] :
         {std::pair(wire::kPmiEpoch, exited.pmi_end), std::pair(wire::kPmixEpoch, exited.pmix_end)})
      if (mpi_end != wire::MpiEnd::kInOrder) out_of_mpi_[epoch].emplace(end.rank, mpi_end);
    look_for_missed_ranks();
  }
  if (end.signal_was_ours) {
    // Whatever became of the words that should have come first: this is no job that ended well.
    if (!state.problem)
      gave_up(state, host, "its agent ended rank " + std::to_string(end.rank) + " there unasked");
    return;
  }
  const std::string words = "ended with " + end.status.text() + exited.standing_words();
  if (end.failed() || exited.left_unannounced) {
    announce_end(end.rank, words);
  } else if (exited.never_joined) {
    strangers_.emplace_back(end.rank, words);
    announce_strangers();
  }
}

// A rank that ended well and never joined is nobody's loss in a job of plain programs. It is one as
// soon as ranks of other hosts wait to meet it.
void EventRouter::announce_strangers() {
  if (!job_.fences || !job_.fences->is_any_open()) return;
  for (const auto& [rank, words] : std::exchange(strangers_, {})) announce_end(rank, words);
}

// A rank that ended well, and not in order for MPI, is nobody's loss in a job of plain programs. It
// is one as soon as others wait for it by MPI, which would be for ever.
void EventRouter::look_for_missed_ranks() {
  for (const auto& [epoch, ranks] : out_of_mpi_) {
    if (!missed_epochs_.count(epoch) && !(job_.fences && job_.fences->is_open(epoch))) continue;
    const auto& [rank, end] = *ranks.begin();
    job_.policy->missed_in_mpi(rank, end == wire::MpiEnd::kNotBegun ? "MPI_Init" : "MPI_Finalize",
                               now());
  }
}

void EventRouter::announce_end(int rank, const std::string& words) {
  const int host = job_.plan.ranks[static_cast<std::size_t>(rank)].host;
  const std::string& name = job_.hosts[static_cast<std::size_t>(host)].target.name;
  announce_death(rank, host, words + ", on host " + name);
}

void EventRouter::announce_death(int rank, int from_host, const std::string& reason) {
  for (std::size_t host = 0; host < job_.hosts.size(); ++host) {
    if (static_cast<int>(host) == from_host || !job_.hosts[host].is_there()) continue;
    job_.hosts[host].link->send(wire::RankDied{static_cast<std::uint32_t>(rank), reason});
  }
}

void EventRouter::answered(HostState& state, const wire::QueryReply& reply) {
  state.query_answered = reply.number;
  state.exiting = reply.exiting;
  state.stopped = reply.stopped;
  state.absent = reply.absent;
  state.in_pmi = reply.in_pmi;
  state.in_pmix = reply.in_pmix;
  for (std::size_t i = 0; i < state.waited.size(); ++i)
    state.waited[i] = bounded_seconds(reply.waited_s[i]);
}

void EventRouter::on_link_ended(int host, const std::string& reason) {
  const auto index = static_cast<std::size_t>(host);
  if (index >= job_.hosts.size()) return;
  HostState& state = job_.hosts[index];
  if (!state.empty && !state.lost) {
    state.lost = true;
    state.lost_reason = reason;
    if (job_.policy) job_.policy->host_lost(host, reason, state.ranks, now());
    for (const int rank : state.ranks) {
      RankState& lost = job_.ranks[static_cast<std::size_t>(rank)];
      lost.open_streams = 0;
      if (!std::exchange(lost.ended, true))
        announce_death(rank, host, "is lost with host " + state.target.name + ": " + reason);
    }
  }
  job_.change.notify();
}

}  // namespace hv::launcher
