// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/events/event_router.h"

#include <algorithm>
#include <csignal>
#include <exception>

#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/wire/frame.h"

namespace hv::launcher {
namespace {

using wire::Type;

constexpr std::size_t kShownText = 2000;        // bytes of an agent's text
constexpr std::size_t kShownReason = 1000;      // bytes of a rank's reason
constexpr std::size_t kMostNamedLosses = 4096;  // by one rank; further ones tell nothing new

// wait(2) can report it. Any other value would become hvrun's own exit code, even 0.
bool is_valid_exit(const wire::Exited& exited) {
  return exited.by_signal ? exited.code > 0 && exited.code < 128 : exited.code <= 255;
}

bool is_mpi_epoch(std::uint32_t epoch) {
  return epoch == wire::kPmiEpoch || epoch == wire::kPmixEpoch;
}

bool is_known(wire::MpiEnd end) { return end <= wire::MpiEnd::kNotFinalized; }

bool is_known(wire::SigtermUse use) { return use <= wire::SigtermUse::kHandledByDescendant; }

bool is_plausible(const wire::PostMortem& found) {
  return found.out_of_memory <= wire::OutOfMemory::kBesideIt &&
         found.core.size() <= wire::PostMortem::kMostWords &&
         found.memory.size() <= wire::PostMortem::kMostWords;
}

template <class Reply>
bool store_answer(const Frame& frame, Question<Reply>* question) {
  return handle_message<Reply>(frame, [&](Reply reply) { question->answer(std::move(reply)); });
}

}  // namespace

void EventRouter::handle(const FrameArrived& event) {
  Host& host = job_.hosts.at(event.link.host);
  if (!host.link || !(host.link->id() == event.link)) return;
  bool is_valid = false;
  std::string reason = "its agent broke the protocol (" + wire::name_of(event.frame.type) + ")";
  try {
    is_valid = route(host, event.frame);
  } catch (const std::exception& error) {  // a message that exhausts memory, for example
    reason = std::string("hvrun could not go on with it: ") + error.what();
  }
  if (is_valid) return;
  host.drop_link();
  lose(host, reason);
}

void EventRouter::handle(const LinkEnded& event) {
  Host& host = job_.hosts.at(event.link.host);
  if (host.link && host.link->id() == event.link) lose(host, event.reason);
}

// Reports that move a host to another phase.
bool EventRouter::route(Host& host, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kHello:
      return handle_message<wire::Hello>(
          frame, [&](wire::Hello hello) { return greet(host, std::move(hello)); });
    case Type::kSetupReply:
      return handle_message<wire::SetupReply>(frame, [&](wire::SetupReply set_up) {
        host.answers.set_up = std::move(set_up);
        return host.phase.set_up();
      });
    case Type::kReady:
      return handle_message<wire::Ready>(frame,
                                         [&](wire::Ready) { return host.phase.make_ready(); });
    case Type::kStarted:
      return handle_message<wire::Started>(
          frame, [&](const wire::Started& started) { return start_ranks(host, started); });
    case Type::kProblem:
      return handle_message<wire::Problem>(frame, [&](const wire::Problem& problem) {
        end_unrequested(host, printable(problem.what, kShownText),
                        {printable(problem.hint, kShownText), problem.leaves_grace});
      });
    case Type::kEmpty:
      return handle_message<wire::Empty>(
          frame, [&](const wire::Empty& empty) { become_empty(host, empty); });
    default:
      return route_answer(host, frame);
  }
}

bool EventRouter::greet(Host& host, wire::Hello hello) {
  // A one-way reading: the round trip of the first Ping is more exact.
  host.link->clock().add_one_way(hello.wall_clock_ns, wall_clock_ns());
  host.answers.greeting = Greeting{std::move(hello), now()};
  return host.phase.greet();
}

bool EventRouter::start_ranks(Host& host, const wire::Started& started) {
  if (!job_.stage.may_ranks_run() || !host.phase.start_ranks()) return false;
  const std::vector<int>& ranks = job_.slots.ranks_on(host.id);
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    Slot& slot = job_.slots.of_rank(ranks[i]);
    if (!slot.has_ended()) slot.phase = Slot::Phase::kRunning;
    if (i < started.pids.size()) slot.pid = started.pids[i];
  }
  return true;
}

// Answers to what the launch sequence or a check asked.
bool EventRouter::route_answer(Host& host, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kInventoryReply:
      return store_answer(frame, &host.answers.inventory);
    case Type::kProbeReply:
      return store_answer(frame, &host.answers.reachability);
    case Type::kCheckReply:
      return store_answer(frame, &host.answers.checks);
    case Type::kPairReply:
      return store_answer(frame, &host.answers.measurements);
    case Type::kWiringReply:
      return handle_message<wire::WiringReply>(frame, [&](wire::WiringReply reply) {
        if (!reply.problem.empty())
          host.phase.fail(Error(ErrorKind::kStart, printable(reply.problem, kShownText),
                                printable(reply.hint, kShownText)));
        host.answers.wiring.answer(std::move(reply));
      });
    default:
      return route_run(host, frame);
  }
}

// While ranks run, and at their end.
bool EventRouter::route_run(Host& host, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kOutput:
      return receive_output(host, frame);
    case Type::kResult:
      return receive_result(host, frame);
    case Type::kExited:
      return receive_exit(host, frame);
    case Type::kSignal:
      return handle_message<wire::Signal>(frame, [&](const wire::Signal& signal) {
        if (signal.number == SIGTERM) {
          job_.signals.is_slurm_ending = true;
          return true;
        }
        if (signal.number != SIGUSR1 && signal.number != SIGUSR2) return false;
        job_.signals.forwarded = signal.number;
        return true;
      });
    case Type::kCredit:
      return handle_message<wire::Credit>(
          frame, [&](const wire::Credit& credit) { sinks_.input_accepted(credit.bytes); });
    case Type::kQueryReply:
      return handle_message<wire::QueryReply>(
          frame, [&](wire::QueryReply reply) { host.answers.ranks = std::move(reply); });
    case Type::kStepsReply:
      return receive_steps(host, frame);
    case Type::kStackReply:
      return receive_stacks(host, frame);
    case Type::kSilenceNoted:
      return store_answer(frame, &host.answers.heartbeat_pause);
    case Type::kNote:
      return handle_message<wire::Note>(frame, [&](const wire::Note& note) {
        if (!note.is_detail || job_.spec.report.verbose)
          sinks_.note((note.is_warning ? "warning: host " : "host ") + host.target.name + ": " +
                      printable(note.text, kShownText));
      });
    default:
      return route_wait(host, frame);
  }
}

// Ranks that wait for other ranks.
bool EventRouter::route_wait(Host& host, const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kFenceIn:
      return handle_message<wire::FenceIn>(
          frame, [&](wire::FenceIn in) { return pass_fence(host, std::move(in)); });
    case Type::kMpiMissed:
      return handle_message<wire::MpiMissed>(frame, [&](const wire::MpiMissed& missed) {
        if (!is_mpi_epoch(missed.epoch)) return false;
        missing_.add_waiting(missed.epoch);
        return true;
      });
    case Type::kMpiBegun:
      return handle_message<wire::MpiBegun>(frame, [&](const wire::MpiBegun& begun) {
        if (!is_mpi_epoch(begun.epoch)) return false;
        mpi_epochs_.insert(begun.epoch);
        if (mpi_epochs_.size() > 1) sinks_.both_mpis_begun();
        return true;
      });
    case Type::kRankLost:
      return handle_message<wire::RankLost>(
          frame, [&](const wire::RankLost& lost) { return name_lost(host, lost); });
    case Type::kFenceStalled:
      return handle_message<wire::FenceStalled>(frame, [&](const wire::FenceStalled& stall) {
        if (stall.meeting > wire::Meeting::kMpi) return false;
        sinks_.fence_stalled(stall);
        return true;
      });
    case Type::kTensorStalled:
      return handle_message<wire::TensorStalled>(frame, [&](const wire::TensorStalled& stalled) {
        if (!stalled.stall.is_plausible() || !job_.slots.runs_on(stalled.by, host.id)) return false;
        sinks_.tensor_stalled(stalled);
        return true;
      });
    case Type::kCallStalled:
      return handle_message<wire::CallStalled>(frame, [&](const wire::CallStalled& stalled) {
        if (!stalled.stall.is_plausible() || !job_.slots.runs_on(stalled.by, host.id)) return false;
        sinks_.call_stalled(stalled);
        return true;
      });
    default:
      return false;
  }
}

bool EventRouter::receive_output(const Host& host, const Frame& frame) {
  wire::Output output;
  if (!decode(frame.payload, &output) || !job_.slots.runs_on(output.rank, host.id)) return false;
  if (output.stream != 1 && output.stream != 2) return false;
  Slot& slot = job_.slots.of_rank(static_cast<int>(output.rank));
  // A message that takes no credit comes once, at the end of the stream.
  if (slot.ended_streams[output.stream - 1] || (output.bytes.empty() && !output.end)) return false;
  if (output.end) {
    slot.ended_streams[output.stream - 1] = true;
    --slot.open_streams;
  }
  if (!output.bytes.empty()) {
    slot.last_output = now();
    slot.quiet = Duration::zero();  // the report of its end overtakes what it wrote last
  }
  return sinks_.output(std::move(output));
}

bool EventRouter::receive_result(const Host& host, const Frame& frame) {
  wire::Result result;
  if (!decode(frame.payload, &result) || !job_.slots.runs_on(0, host.id)) return false;
  const bool is_end = result.end;
  if (result.bytes.empty() && !is_end) return false;
  if (!sinks_.result(std::move(result))) return false;
  if (is_end) --job_.slots.of_rank(0).open_streams;
  return true;
}

bool EventRouter::receive_exit(Host& host, const Frame& frame) {
  wire::Exited exited;
  if (!decode(frame.payload, &exited) || !job_.slots.runs_on(exited.rank, host.id)) return false;
  if (!job_.stage.may_ranks_run()) return false;
  if (job_.slots.of_rank(static_cast<int>(exited.rank)).has_ended()) return false;
  // The agent has checked what its ranks report: it passes on nothing else.
  if (!is_valid_exit(exited) || !is_known(exited.pmi_end) || !is_known(exited.pmix_end) ||
      !is_known(exited.termination.use) || !is_plausible(exited.found) ||
      !exited.step_times.is_plausible())
    return false;
  end_rank(host, exited);
  return true;
}

void EventRouter::end_rank(Host& host, const wire::Exited& exited) {
  RankEnd end;
  end.rank = static_cast<int>(exited.rank);
  end.status = ExitStatus{exited.by_signal, static_cast<int>(exited.code), exited.core_dumped};
  end.signal_was_ours = exited.signal_was_ours;
  end.time_ns = host.link->clock().corrected(exited.wall_clock_ns);
  end.left_unannounced = exited.left_unannounced;
  end.never_joined = exited.never_joined;
  if (exited.left_ns != 0) end.left_ns = host.link->clock().corrected(exited.left_ns);
  end.found = exited.found;
  end.on_sigterm = exited.termination.use;
  end.may_hold_text = exited.may_hold_text;
  end.grace_s = Seconds(bounded_seconds(exited.termination.grace_s)).count();
  Slot& slot = job_.slots.of_rank(end.rank);
  slot.phase = Slot::Phase::kEnded;
  slot.step_times = exited.step_times;
  slot.quiet = now() - std::max(slot.last_output, job_.stage.ranks_begun());
  job_.policy->rank_ended(end, now());
  if (!end.failed()) missing_.add_ended(exited);
  if (end.signal_was_ours) {
    // An agent reports its own reason first, and that one counts. Without it the job failed, too.
    end_unrequested(host, "its agent ended rank " + std::to_string(end.rank) + " there unasked");
    return;
  }
  const std::string text = "ended with " + end.status.text() + exited.standing_words();
  if (end.failed() || exited.left_unannounced) {
    missing_.announce_end(end.rank, text);
  } else if (exited.never_joined) {
    missing_.add_never_joined(end.rank, text);
  }
}

// The times of a rank that has ended came with its end.
bool EventRouter::receive_steps(const Host& host, const Frame& frame) {
  wire::StepsReply reply;
  if (!decode(frame.payload, &reply)) return false;
  for (const wire::RankSteps& each : reply.ranks) {
    if (!job_.slots.runs_on(each.rank, host.id) || !each.times.is_plausible()) return false;
    Slot& slot = job_.slots.of_rank(static_cast<int>(each.rank));
    if (!slot.has_ended()) slot.step_times = each.times;
  }
  return true;
}

bool EventRouter::pass_fence(const Host& host, wire::FenceIn in) {
  if (!job_.fences) return true;
  if (!job_.fences->may_arrive(host.id, in)) return false;
  if (const auto out = job_.fences->arrive(host.id, std::move(in))) job_.send_to_all(*out);
  if (const std::size_t bytes = job_.fences->excess_bytes())
    job_.request_stop({StopReason::Kind::kCannotStart, 0,
                       "the ranks have " + format_bytes(bytes) +
                           " of addresses for each other, and an agent takes at most " +
                           format_bytes(wire::kMaxAgentPayload),
                       "use fewer ranks (-np)"});
  missing_.check_fences();
  return true;
}

// Its agent passes on what the rank says, which may name a rank that is none.
bool EventRouter::name_lost(const Host& host, const wire::RankLost& lost) {
  if (!job_.slots.runs_on(lost.by, host.id)) return false;
  if (lost.rank >= job_.slots.count()) return true;
  std::set<std::uint32_t>& named = named_losses_[lost.by];
  if (named.size() == kMostNamedLosses || !named.insert(lost.rank).second) return true;
  job_.policy->named_lost(static_cast<int>(lost.rank), printable(lost.reason, kShownReason),
                          static_cast<int>(lost.by));
  return true;
}

bool EventRouter::receive_stacks(Host& host, const Frame& frame) {
  wire::StackReply reply;
  if (!decode(frame.payload, &reply)) return false;
  for (const wire::RankStacks& stacks : reply.stacks)
    if (!job_.slots.runs_on(stacks.rank, host.id)) return false;
  host.answers.stacks.answer(std::move(reply));
  return true;
}

void EventRouter::become_empty(Host& host, const wire::Empty& empty) {
  end_unrequested(host, "its agent was told to end there");
  host.phase.become_empty(!empty.stuck.empty() || !empty.may_remain.empty());
  for (const std::string& process : empty.stuck) {
    sinks_.note("warning: on host " + host.target.name + " " + printable(process) +
                " is stuck in the kernel (state D) and was not waited for");
  }
  for (const std::string& process : empty.may_remain) {
    sinks_.note("warning: on host " + host.target.name + " " + printable(process) +
                " may remain of this job: its agent and the agent's guard were killed at once, and "
                "nothing tells whose it is; look at it there with ps, and end it with kill");
  }
}

// A user or the scheduler on that host ended the agent, or it cannot do its part. Before its ranks
// run, that is a failed start; from then on the job has lost the host. Changes nothing once the
// host has failed, ends or is lost.
void EventRouter::end_unrequested(Host& host, const std::string& reason,
                                  const UnrequestedEnd& end) {
  if (!host.phase.is<HostRunning>()) {
    host.phase.fail(Error(ErrorKind::kStart, reason, end.advice));
    return;
  }
  host.phase.end(end);
  job_.policy->host_lost(*job_.slots.position_of(host.id), reason, job_.slots.ranks_on(host.id),
                         now());
}

void EventRouter::lose(Host& host, const std::string& reason) {
  const std::vector<int>& ranks = job_.slots.ranks_on(host.id);
  // An agent that left in order, or a second one, has no more output either.
  for (const int rank : ranks) job_.slots.of_rank(rank).open_streams = 0;
  const Error sweep_error(ErrorKind::kStart, "the one that was started was lost: " + reason);
  if (host.phase.finish_sweep(sweep_error) || !host.phase.lose(reason)) return;
  const std::optional<int> position = job_.slots.position_of(host.id);
  if (!job_.policy || !position) return;
  job_.policy->host_lost(*position, reason, ranks, now());
  for (const int rank : ranks) {
    Slot& slot = job_.slots.of_rank(rank);
    if (slot.has_ended()) continue;
    slot.phase = Slot::Phase::kEnded;
    missing_.announce_loss(rank, host.id, "is lost with host " + host.target.name + ": " + reason);
  }
}

}  // namespace hv::launcher
