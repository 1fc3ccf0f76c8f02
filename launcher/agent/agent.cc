// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/agent.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <set>
#include <utility>

#include "hvrun_version.h"
#include "launcher/agent/ending/descendant_hunt.h"
#include "launcher/agent/ranks/rank_command.h"
#include "launcher/agent/ranks/rank_starter.h"
#include "launcher/facts/bound_cores.h"
#include "launcher/facts/facts.h"
#include "src/base/bounded_seconds.h"
#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/process/signals.h"
#include "src/wire/frame.h"

namespace hv::launcher {
namespace {

using wire::Type;

constexpr auto kMostGraceWithoutHvrun = std::chrono::seconds(2);
constexpr auto kSweepPause = std::chrono::milliseconds(20);

}  // namespace

AgentServices::AgentServices(ServiceContext agent, GuardBoard& board)
    : context(std::move(agent)),
      inventory(context),
      check(context),
      pairs(context),
      stacks(context),
      mpi(context, board),
      post_mortem(context) {}

bool AgentServices::is_any_awaited() {
  const auto services = all();
  return std::any_of(services.begin(), services.end(),
                     [](const AgentService* service) { return service->is_awaited(); });
}

Agent::Agent(const Environment& environment, std::unique_ptr<HvrunStream> stream,
             UniqueFd guard_life, GuardBoard& board)
    : environment_(environment),
      board_(board),
      link_(loop_, std::move(stream),
            {[this](const Frame& frame) {
               if (!handle(frame))
                 link_.give_up("hvrun sent a message out of turn, of type " +
                               std::to_string(frame.type));
             },
             [this] { heartbeat_.note_heard(); },
             [this](const std::string& reason) { hvrun_lost(reason); },
             [this] {
               ranks_.local().poll_held_streams();
               leave_if_done();
             }}),
      heartbeat_(loop_, link_,
                 [this] {
                   for (AgentService* const service : services_.all()) service->idle();
                 }),
      events_(loop_, std::move(guard_life),
              {[this] { reap(); }, [this](int number) { signal_arrived(number); },
               [this] { guard_lost(); }}),
      ranks_(loop_, link_, environment),
      services_({loop_, link_, environment, host_.request, ranks_.local(), [this] { reap(); }},
                board),
      connections_(link_, ranks_.local(), services_.mpi.wiring(), host_),
      ending_(loop_, link_, ranks_.local(), [this] { finish_job(); }) {}

int Agent::run(std::optional<Duration> lost_after) {
  if (lost_after) heartbeat_.set_timeout(*lost_after);
  wire::Hello hello;
  hello.build = HVRUN_BUILD_ID;
  hello.agent = process_id(::getpid());
  hello.guard = process_id(::getppid());
  hello.cgroup = cgroup_of(::getpid());
  hello.wall_clock_ns = wall_clock_ns();
  hello.facts = gather_facts(environment_);
  link_.send(hello);
  loop_.run();
  return exit_code_of(*leave_reason_);
}

Duration Agent::grace() const { return bounded_seconds(host_.request.grace_s); }

bool Agent::handle(const Frame& frame) {
  const auto type = static_cast<Type>(frame.type);
  if (!is_allowed(phase_, type)) return false;
  if (leave_reason_ && begins_work(type)) return true;
  for (AgentService* const service : services_.all()) {
    const Handled handled = service->handle(frame);
    if (handled != Handled::kNotMine) return handled == Handled::kDone;
  }
  return handle_phase(frame) || handle_ranks(frame);
}

bool Agent::handle_phase(const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kPing:
      return handle_message<wire::Ping>(frame, [&](const wire::Ping& ping) {
        link_.send(wire::Pong{ping.wall_clock_ns, wall_clock_ns()});
      });
    case Type::kPong:
      return true;  // it has counted as a heartbeat already
    case Type::kSetupRequest:
      return handle_message<wire::SetupRequest>(
          frame, [&](const wire::SetupRequest& setup) { return set_up(setup); });
    case Type::kLaunch:
      return handle_message<wire::Launch>(
          frame, [&](wire::Launch request) { return launch(std::move(request)); });
    case Type::kGo:
      return handle_message<wire::Go>(frame, [&](wire::Go) { go(); });
    case Type::kGraceAfterSignal:
      return handle_message<wire::GraceAfterSignal>(
          frame, [&](const wire::GraceAfterSignal& grace) {
            host_.request.grace_after_signal_s = grace.grace_s;
          });
    case Type::kEnd:
      return handle_message<wire::End>(frame, [&](const wire::End& end) {
        leave_reason_ = combine(leave_reason_, LeaveReason::kEndRequested);
        end_job(bounded_seconds(end.grace_s), end.by_scheduler && does_slurm_signal_ranks()
                                                  ? JobEnding::Sigterm::kExpected
                                                  : JobEnding::Sigterm::kToSend);
      });
    default:
      return false;
  }
}

bool Agent::handle_ranks(const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kCredit:
      return handle_message<wire::Credit>(
          frame, [&](const wire::Credit& credit) { ranks_.add_credit(credit); });
    case Type::kSignal:
      return handle_message<wire::Signal>(
          frame, [&](const wire::Signal& signal) { ranks_.forward_signal(signal.number); });
    case Type::kWindowSize:
      return handle_message<wire::WindowSize>(
          frame, [&](const wire::WindowSize& size) { ranks_.resize(size); });
    case Type::kStdin:
      return handle_message<wire::Stdin>(
          frame, [&](const wire::Stdin& input) { return ranks_.take_input(input); });
    case Type::kPause:
      return handle_message<wire::Pause>(
          frame, [&](const wire::Pause& request) { pause(request.stopped); });
    case Type::kSilence:
      return handle_message<wire::Silence>(
          frame, [&](const wire::Silence& silence) { connections_.pause_heartbeats(silence); });
    case Type::kQuery:
      return handle_message<wire::Query>(frame, [&](const wire::Query& query) {
        reap();  // a rank that can be reaped now has ended, and its end is reported first
        link_.send(connections_.answer(query, services_.stacks.is_reading()));
      });
    case Type::kStepsRequest:
      return handle_message<wire::StepsRequest>(
          frame, [&](wire::StepsRequest) { link_.send(connections_.step_times()); });
    case Type::kFenceOut:
      return handle_message<wire::FenceOut>(
          frame, [&](const wire::FenceOut& out) { connections_.pass_fence(out); });
    case Type::kRankDied:
      return handle_message<wire::RankDied>(
          frame, [&](const wire::RankDied& died) { connections_.report_death(died); });
    default:
      return false;
  }
}

bool Agent::set_up(const wire::SetupRequest& setup) {
  if (services_.inventory.is_awaited()) return false;
  heartbeat_.set_timeout(bounded_seconds(setup.lost_after_s));
  if (setup.sweep) {
    advance(AgentEvent::kSweepBegun);
    sweeper_.emplace(setup.job_id, setup.host_id, std::set<pid_t>{::getpid(), ::getppid()},
                     *setup.sweep);
    sweep();
    return true;
  }
  advance(AgentEvent::kHostSetUp);
  if (const auto problem = connections_.set_up(loop_, setup)) {
    link_.send(*problem);
    return true;
  }
  board_.write_cgroup(host_.cgroup.directory());
  ending_.use_cgroup(&host_.cgroup);
  link_.send(host_.reply());
  return true;
}

bool Agent::launch(wire::Launch launch) {
  if (!is_well_formed(launch)) return false;
  host_.probe.reset();
  if (const auto problem = ranks_.accept(std::move(launch))) {
    link_.send(*problem);
    return true;
  }
  services_.mpi.wiring().start_pmi(ranks_.launch(), host_.request.job_id);
  host_.python_start.create(host_.request);
  board_.write_python_directory(host_.python_start.directory());
  advance(AgentEvent::kProgramsFound);
  link_.send(wire::Ready{});
  return true;
}

void Agent::go() {
  advance(AgentEvent::kStartBegun);
  connections_.expect_ranks();
  services_.post_mortem.begin(host_.cgroup.directory());
  ranks_.start(
      host_.cgroup.directory(),
      [this](std::uint32_t rank, RankEnvironment* environment, UniqueFd* passed) {
        host_.python_start.add_to(environment);
        return services_.mpi.wiring().prepare(rank, environment, passed);
      },
      [this] { leave_if_done(); }, [this](const Status& status) { finish_start(status); });
}

void Agent::finish_start(const Status& status) {
  if (!status.ok()) {
    link_.send(wire::Problem{"start the ranks: " + status.message, start_advice(status)});
    return end_job(Duration::zero());
  }
  advance(AgentEvent::kAllStarted);
  link_.send(wire::Started{ranks_.local().pids()});
  ranks_.send_held_signals();
  // Once they run: of two jobs that start at the same time, one sees the other.
  const std::string shared =
      describe_shared_cores(host_.request.job_id, ranks_.cores_of_one_each(), own_cores());
  if (!shared.empty())
    link_.send(wire::Note{.text = shared +
                                  ", so both jobs are slow: run one after the other or elsewhere, "
                                  "or both with --bind-to none",
                          .is_warning = true});
}

void Agent::pause(bool stopped) {
  heartbeat_.pause(stopped);
  ending_.pause(stopped);
}

// SIGUSR1 and SIGUSR2 are for the ranks: sbatch --signal sends them to each task of the step, which
// are the agents.
void Agent::signal_arrived(int number) {
  if (number == SIGUSR1 || number == SIGUSR2) {
    link_.send(wire::Signal{number});
    ranks_.forward_signal(number, does_slurm_signal_ranks() ? ranks_.local().all().size() : 0);
    return;
  }
  if (number == SIGTERM && is_in_slurm_step()) link_.send(wire::Signal{number});
  if (!leave_reason_) {
    leave_reason_ = LeaveReason::kSignal;
    report_own_end("its agent was ended by " + signal_text(number), true);
    end_job(bounded_seconds(host_.request.grace_after_signal_s),
            does_slurm_signal_ranks() ? JobEnding::Sigterm::kSent : JobEnding::Sigterm::kToSend);
  } else if (number == SIGTERM) {
    ending_.note_sigterm();
    leave_reason_ = combine(leave_reason_, LeaveReason::kSignal);
    // Slurm, which ends the step, has ended hvrun a little earlier.
    if (leave_reason_ == LeaveReason::kHvrunLost && is_in_slurm_step())
      ending_.lengthen(bounded_seconds(host_.request.grace_after_signal_s));
  }
}

// Slurm has signalled every process of the step: ranks that run already have got a signal of the
// agent, too.
bool Agent::does_slurm_signal_ranks() const {
  return host_.request.slurm_signals_ranks && is_in_slurm_step();
}

bool Agent::is_in_slurm_step() const {
  return environment_.get_filled("SLURM_STEP_ID").has_value();
}

// hvrun did not request this end: an answer that it waits for will not come any more, and the ranks
// do not end on their own from now on, not even those with exit code 0.
void Agent::report_own_end(const std::string& text, bool leaves_grace) {
  if (sweeper_) return link_.send(wire::Note{text + " and ends the job there"});
  const auto job = environment_.get_filled("SLURM_JOB_ID");
  link_.send(wire::Problem{
      text,
      job ? "Slurm ends a job at its time limit, and by scancel: 'scontrol show job " +
                printable(*job) + "' says which"
          : "find out what ends processes on that host",
      leaves_grace});
}

void Agent::child_ended(pid_t pid, const ExitStatus& status) {
  for (AgentService* const service : services_.all())
    if (service->child_ended(pid, status)) return;
  if (RankProcess* const rank = ranks_.local().by_pid(pid)) rank_ended(*rank, rank->end_of(status));
}

void Agent::rank_ended(RankProcess& rank, const ExitStatus& status) {
  rank.note_end(status);
  wire::Exited exited = connections_.end_rank(rank, status);
  if (!exited.signal_was_ours)
    exited.found = services_.post_mortem.examine(rank, status, ranks_.launch());
  link_.send(exited);
  rank.poll_streams();
}

void Agent::reap() {
  const bool has_children = reap_children(
      [this](pid_t pid, int status) { child_ended(pid, ExitStatus::from_wait(status)); });
  ending_.note_children_ended();
  if (!has_processes(phase_)) return leave_if_done();
  const LocalRanks& ranks = ranks_.local();
  if (!ranks.any_running()) services_.mpi.wiring().let_go();
  if (!has_children && !ranks.is_starting()) {
    ending_.note_nothing_left();
    if (has_processes(phase_)) finish_job();
  } else if (!ranks.any_running() && phase_ != AgentPhase::kEnding && !services_.is_any_awaited()) {
    // Processes that the ranks left behind hold the ranks' streams open, and must not stay. A
    // service that gathers facts about a failure may answer first.
    end_job(grace());
  }
  leave_if_done();
}

void Agent::guard_lost() {
  leave_reason_ = combine(leave_reason_, LeaveReason::kGuardLost);
  report_own_end("its agent's guard was killed, so that the agent ended its ranks while it could",
                 false);
  end_job(std::min<Duration>(grace(), kMostGraceWithoutHvrun));
}

// hvrun may hang up at any time after Empty.
void Agent::hvrun_lost(const std::string& reason) {
  const bool said_empty =
      phase_ == AgentPhase::kLeaving && leave_reason_ != LeaveReason::kGuardLost;
  // Slurm signals the agents of a step that it ends, and ends hvrun: the ranks keep their time.
  const bool is_slurm_ending = leave_reason_ == LeaveReason::kSignal && is_in_slurm_step();
  if (!said_empty) {
    leave_reason_ = combine(leave_reason_, LeaveReason::kHvrunLost);
    // Rarely read: the stream that carried the job is broken.
    const std::string text = "hvrun-agent: " + reason + "; ending the job on this host\n";
    (void)!::write(2, text.data(), text.size());
  }
  ranks_.local().discard_streams();
  if (is_slurm_ending) return leave_if_done();
  end_job(std::min<Duration>(grace(), kMostGraceWithoutHvrun));
}

void Agent::advance(AgentEvent event) {
  const std::optional<AgentPhase> next = next_phase(phase_, event);
  HV_CHECK(next, "event " + std::to_string(static_cast<int>(event)) + " in phase " +
                     std::to_string(static_cast<int>(phase_)));
  phase_ = *next;
}

void Agent::end_job(Duration grace, JobEnding::Sigterm sigterm) {
  for (AgentService* const service : services_.all()) service->cancel();
  ranks_.give_up_unstarted();
  if (has_processes(phase_)) {
    advance(AgentEvent::kEndBegun);
    ending_.begin(grace, sigterm);
    reap();
  }
  leave_if_done();
}

// Processes that still run cannot be ended, so their streams are not waited for.
void Agent::finish_job() {
  advance(AgentEvent::kNothingRuns);
  for (const std::string& process : ending_.forbidden()) {
    link_.send(wire::Note{process + " belongs to another user and could not be ended"});
  }
  ranks_.local().finish_streams();
  leave_if_done();
}

void Agent::sweep() {
  if (!sweeper_->step()) {
    loop_.call_after(kSweepPause, [this] { sweep(); });
    return;
  }
  leave_reason_ = combine(leave_reason_, LeaveReason::kSwept);
  leave_if_done();
}

void Agent::leave_if_done() {
  const bool is_first = phase_ != AgentPhase::kLeaving;
  if (is_first) {
    if (!leave_reason_ || has_processes(phase_) || services_.is_any_awaited() ||
        ranks_.local().any_open_stream() || (sweeper_ && !sweeper_->is_over()))
      return;
    advance(AgentEvent::kNothingToWaitFor);
  }
  host_.cgroup.remove();  // stuck processes keep their cgroup
  services_.mpi.wiring().close();
  host_.python_start.remove();
  if (is_first && leave_reason_ != LeaveReason::kGuardLost) {
    link_.send(sweeper_ ? wire::Empty{sweeper_->stuck(), sweeper_->may_remain()}
                        : wire::Empty{ending_.stuck()});
  }
  if (link_.is_lost() || link_.is_flushed()) loop_.stop();
}

}  // namespace hv::launcher
