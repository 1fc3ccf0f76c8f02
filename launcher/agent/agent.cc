// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/agent.h"

#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "hvrun_version.h"
#include "launcher/agent/ranks/output_frame.h"
#include "launcher/agent/ranks/own_gpu_use.h"
#include "launcher/agent/ranks/rank_command.h"
#include "launcher/agent/ranks/rank_starter.h"
#include "launcher/facts/facts.h"
#include "src/base/bounded_seconds.h"
#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/text.h"
#include "src/process/command.h"
#include "src/process/signals.h"
#include "src/wire/frame.h"

namespace hv::launcher {
namespace {

using wire::Type;

constexpr auto kFirstSilence = std::chrono::seconds(60);  // before Setup tells --lost-after
constexpr auto kMostGraceOfOrphans = std::chrono::seconds(2);
constexpr auto kSweepPause = std::chrono::milliseconds(20);
constexpr auto kStartTurn = std::chrono::milliseconds(5);

}  // namespace

Agent::Agent(const Environment& environment, std::unique_ptr<HvrunStream> stream,
             UniqueFd guard_life, GuardBoard& board)
    : environment_(environment),
      guard_life_(std::move(guard_life)),
      board_(board),
      link_(loop_, std::move(stream),
            {[this](const Frame& frame) {
               if (!handle(frame))
                 link_.give_up("hvrun sent a message out of turn, of type " +
                               std::to_string(frame.type));
             },
             [this] { silence_.heard(now()); },
             [this](const std::string& reason) { hvrun_lost(reason); },
             [this] {
               ranks_.look_at_held_streams();
               leave_if_done();
             }}),
      room_{loop_, link_},
      silence_(kFirstSilence, now()),
      mpi_(loop_, {[this](const wire::FenceIn& fence) { link_.send(fence); },
                   [this](std::uint32_t rank, int code) { ranks_.abort(rank, code); },
                   [this](const std::string& words) { link_.send(wire::Note{words}); },
                   [this](const wire::FenceStalled& stall) { link_.send(stall); },
                   [this](const wire::MpiMissed& missed) { link_.send(missed); },
                   [this](const wire::MpiBegun& begun) { link_.send(begun); }}),
      ranks_(loop_, kStartTurn),
      stacks_(loop_, environment, ranks_, [this](const auto& reply) { link_.send(reply); }),
      ending_(loop_, ranks_, pause_, [this] { job_is_over(); }) {
  watch_signals();
  loop_.watch(guard_life_.get(), EPOLLIN, [this](std::uint32_t) { guard_lost(); });
  next_beat_ = loop_.call_after(silence_.interval(), [this] { beat(); });
}

int Agent::run() {
  wire::Hello hello;
  hello.build = HVRUN_BUILD_ID;
  hello.pid = static_cast<std::uint32_t>(::getpid());
  hello.wall_clock_ns = wall_clock_ns();
  hello.facts = gather_facts(environment_);
  link_.send(hello);
  loop_.run();
  return exit_code_;
}

Duration Agent::grace() const { return bounded_seconds(host_.wanted.grace_s); }

bool Agent::handle(const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kPing:
      return handle_message<wire::Ping>(frame, [&](const wire::Ping& ping) {
        link_.send(wire::Pong{ping.wall_clock_ns, wall_clock_ns()});
      });
    case Type::kPong:
      return true;  // hvrun lives, which is all that is asked
    case Type::kEnd:
      return handle_message<wire::End>(frame, [&](const wire::End& end) {
        leaves_when_done_ = true;
        end_job(bounded_seconds(end.grace_s));
      });
    case Type::kInventoryRequest:
      return handle_message<wire::InventoryRequest>(
          frame, [&](const wire::InventoryRequest& request) { return take_inventory(request); });
    case Type::kCheckRequest:
      return handle_message<wire::CheckRequest>(
          frame, [&](const wire::CheckRequest& request) { return check(request); });
    case Type::kSetup:
      return phase_ == Phase::kGreeted &&
             handle_message<wire::Setup>(frame,
                                         [&](const wire::Setup& setup) { return set_up(setup); });
    default:
      break;
  }
  // A signal for hvrun may come while it still waits for other hosts.
  const auto type = static_cast<Type>(frame.type);
  if (type == Type::kPause || type == Type::kSignal || type == Type::kSilence) return steer(frame);
  if (phase_ == Phase::kGreeted || phase_ == Phase::kSweeping) return false;
  return prepare(frame) || steer(frame);
}

bool Agent::prepare(const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kProbeRequest:
      return handle_message<wire::ProbeRequest>(
          frame, [&](const wire::ProbeRequest& request) { return probe(request); });
    case Type::kPairRequest:
      return handle_message<wire::PairRequest>(
          frame, [&](const wire::PairRequest& request) { return measure(request); });
    case Type::kWiringRequest:
      return handle_message<wire::WiringRequest>(
          frame, [&](const wire::WiringRequest& request) { return wire_mpi(request); });
    case Type::kLaunch:
      return handle_message<wire::Launch>(
          frame, [&](wire::Launch wanted) { return launch(std::move(wanted)); });
    case Type::kGo:
      return handle_message<wire::Go>(frame, [&](wire::Go) { return go(); });
    default:
      return false;
  }
}

bool Agent::steer(const Frame& frame) {
  switch (static_cast<Type>(frame.type)) {
    case Type::kCredit:
      return handle_message<wire::Credit>(frame,
                                          [&](const wire::Credit& credit) { add_credit(credit); });
    case Type::kSignal:
      return handle_message<wire::Signal>(
          frame, [&](const wire::Signal& wanted) { forward_signal(wanted.number); });
    case Type::kPause:
      return handle_message<wire::Pause>(frame,
                                         [&](const wire::Pause& wanted) { pause(wanted.stopped); });
    case Type::kSilence:
      return handle_message<wire::Silence>(
          frame, [&](const wire::Silence& silence) { tell_silence(silence); });
    case Type::kStdin:
      return handle_message<wire::Stdin>(
          frame, [&](const wire::Stdin& input) { return take_input(input); });
    case Type::kStackRequest:
      return handle_message<wire::StackRequest>(
          frame, [&](const wire::StackRequest& request) { stacks_.begin(request); });
    case Type::kQuery:
      return handle_message<wire::Query>(frame, [&](const wire::Query& query) {
        reap();  // who can be reaped now has ended, and is told so first
        link_.send(
            wire::QueryReply{query.number,
                             ranks_.on_their_way_out(host_.socket->left_ns()),
                             absent_ranks(),
                             stacks_.is_asking() ? std::vector<std::uint32_t>{} : ranks_.stopped(),
                             {host_.socket->seconds_waited(), mpi_.seconds_waited_to_begin(),
                              mpi_.seconds_waited_since()},
                             mpi_.beginning(wire::kPmiEpoch),
                             mpi_.beginning(wire::kPmixEpoch)});
      });
    case Type::kFenceOut:
      return handle_message<wire::FenceOut>(frame, [&](const wire::FenceOut& out) {
        if (!mpi_.pass(out)) host_.socket->pass_fence(out);
      });
    case Type::kRankDied:
      return handle_message<wire::RankDied>(frame, [&](const wire::RankDied& died) {
        host_.socket->tell_loss(died.rank, died.reason);
      });
    default:
      return false;
  }
}

bool Agent::take_inventory(const wire::InventoryRequest& request) {
  if (inventory_ || leaves_when_done_) return leaves_when_done_;
  std::optional<OwnGpuUse> own;
  if (!ranks_.all().empty()) own.emplace();
  inventory_ = std::make_unique<InventoryRun>(
      loop_, environment_, own_folder() + "/", request,
      [this, own = std::move(own)](wire::InventoryReply reply) mutable {
        if (own) own->leave_out_of(&reply.inventory);
        link_.send(reply);
        inventory_.reset();
        reap();
      });
  return true;
}

bool Agent::check(const wire::CheckRequest& request) {
  if (check_ || leaves_when_done_) return leaves_when_done_;
  check_ = std::make_unique<CheckRun>(loop_, environment_, request,
                                      [this](const wire::CheckReply& reply) {
                                        link_.send(reply);
                                        check_.reset();
                                        reap();
                                      });
  return true;
}

bool Agent::set_up(const wire::Setup& setup) {
  if (inventory_) return false;
  silence_ = SilenceWatch(
      std::max<Duration>(bounded_seconds(setup.lost_after_s), std::chrono::milliseconds(100)),
      now());
  loop_.cancel(next_beat_);
  next_beat_ = loop_.call_after(silence_.interval(), [this] { beat(); });
  if (setup.sweep) {
    phase_ = Phase::kSweeping;
    sweeper_.emplace(setup.job_id, std::set<pid_t>{::getpid(), ::getppid()});
    sweep_on();
    return true;
  }
  phase_ = Phase::kSetUp;
  RankSocketCallbacks callbacks{[this](wire::FenceIn fence) { link_.send(fence); },
                                [this](const wire::RankLost& lost) { link_.send(lost); },
                                [this](const wire::FenceStalled& stall) { link_.send(stall); },
                                [this](const wire::TensorStalled& stall) { link_.send(stall); }};
  if (const auto problem = set_up_host(loop_, setup, std::move(callbacks), &host_)) {
    link_.send(*problem);
    return true;
  }
  mpi_.limit_waits({bounded_seconds(setup.stall_s), bounded_seconds(setup.stall_end_s)});
  board_.write_cgroup(host_.cgroup.folder());
  ending_.use_cgroup(&host_.cgroup);
  link_.send(host_.reply());
  return true;
}

bool Agent::probe(const wire::ProbeRequest& request) {
  if (phase_ != Phase::kSetUp || probe_) return false;
  probe_ = std::make_unique<AddressProbe>(loop_, host_.wanted.key, host_.wanted.job_id, request,
                                          [this](wire::ProbeReply reply) {
                                            link_.send(reply);
                                            probe_.reset();
                                          });
  return true;
}

bool Agent::measure(const wire::PairRequest& request) {
  if (phase_ != Phase::kSetUp || pairs_) return false;
  pairs_ = std::make_unique<PairRun>(loop_, host_.wanted.key, host_.wanted.job_id, request,
                                     [this](const wire::PairReply& reply) {
                                       link_.send(reply);
                                       pairs_.reset();
                                     });
  return true;
}

bool Agent::wire_mpi(const wire::WiringRequest& request) {
  if (phase_ != Phase::kSetUp) return false;
  if (leaves_when_done_) return true;
  mpi_.start_pmix(environment_, request, request.host,
                  [this](const wire::WiringReply& reply) { link_.send(reply); });
  board_.write_folder(mpi_.folder());
  return true;
}

bool Agent::launch(wire::Launch launch) {
  if (phase_ != Phase::kSetUp || !is_well_formed(launch)) return false;
  host_.probe.reset();
  RankPrograms found = rank_programs(launch, environment_);
  if (found.problem) {
    link_.send(*found.problem);
    return true;
  }
  launch_ = std::move(launch);
  programs_ = std::move(found.paths);
  mpi_.start_pmi(launch_, host_.wanted.job_id);
  std::set<std::uint32_t> numbers;
  for (const wire::LaunchRank& rank : launch_.ranks) numbers.insert(rank.rank);
  ranks_.expect(std::move(numbers));
  phase_ = Phase::kReady;
  link_.send(wire::Ready{});
  return true;
}

bool Agent::go() {
  if (phase_ != Phase::kReady) return false;
  phase_ = Phase::kStarting;
  if (leaves_when_done_) return true;  // an End or a signal was faster: nothing starts any more
  host_.socket->expect(ranks_.unstarted());
  if (host_.wanted.release_port) host_.held_port.reset();
  has_children_ = true;
  post_mortem_.begin(host_.cgroup.folder());
  const RankCallbacks callbacks{[this] { leave_if_done(); },
                                [this](std::uint32_t rank, std::uint32_t bytes) {
                                  link_.send(wire::Credit{rank, bytes});
                                }};
  const auto birth_of = [this](std::size_t i, RankBirth* birth) { return prepare_birth(i, birth); };
  ranks_.start(room_, launch_, birth_of, host_.cgroup.folder(), callbacks,
               [this](const Status& status) { start_is_over(status); });
  return true;
}

Status Agent::prepare_birth(std::size_t index, RankBirth* birth) {
  const wire::LaunchRank& rank = launch_.ranks[index];
  birth->command = rank_command(launch_, rank, environment_, programs_[index]);
  return mpi_.prepare(rank.rank, &birth->command, &birth->passed);
}

void Agent::start_is_over(const Status& status) {
  if (!status.ok()) {
    link_.send(wire::Problem{"start the ranks: " + status.message, start_advice(status)});
    return end_job(Duration::zero());
  }
  phase_ = Phase::kRunning;
  link_.send(wire::Started{ranks_.pids()});
  for (const auto& [number, first] : std::exchange(signals_for_all_, {}))
    forward_signal(number, first);
}

// hvrun waits for the end of every stream.
void Agent::start_no_more() {
  const std::uint8_t streams = launch_.pty ? 1 : 2;
  for (const std::uint32_t rank : ranks_.give_up_unstarted()) {
    for (std::uint8_t stream = 1; stream <= streams; ++stream)
      link_.send_output(output_end_frame(rank, stream, wall_clock_ns()));
  }
}

// Who has yet to be started is nobody to look for.
std::vector<std::uint32_t> Agent::absent_ranks() const {
  std::vector<std::uint32_t> absent = host_.socket->absent();
  std::erase_if(absent, [this](std::uint32_t rank) {
    return ranks_.unstarted().count(rank) > 0 || mpi_.is_waiting(rank);
  });
  return absent;
}

bool Agent::take_input(const wire::Stdin& input) {
  RankProcess* const rank = ranks_.by_number(input.rank);
  if (!rank || !rank->input) {
    // Nobody reads it: hvrun must not wait for its credit.
    link_.send(wire::Credit{input.rank, static_cast<std::uint32_t>(input.bytes.size())});
    return true;
  }
  if (!input.bytes.empty() && !rank->input->add(input.bytes)) return false;
  if (input.end) rank->input->end();
  return true;
}

void Agent::add_credit(const wire::Credit& credit) {
  RankProcess* const rank = ranks_.by_number(credit.rank);
  if (!rank) return;
  rank->credit += credit.bytes;
  rank->look_at_held_streams();
}

// To the ranks from that one on, in the order of their start.
void Agent::forward_signal(int number, std::size_t first) {
  // Not noted as ours: a rank that dies of the user's signal has failed.
  if (number <= 0 || number >= NSIG) return;
  if (ranks_.is_starting()) {
    std::size_t& have_had_it = signals_for_all_.emplace(number, first).first->second;
    have_had_it = std::min(have_had_it, first);
    return;
  }
  for (const pid_t group : ranks_.groups(first)) ::kill(-group, number);
}

void Agent::pause(bool stopped) {
  silence_.pause(stopped, now());
  if (ending_.has_begun()) return;
  if (stopped) {
    ranks_.hold_start();
    pause_.stop();
  } else {
    pause_.go_on();
    ranks_.go_on_with_start();
  }
}

// Without a socket no rank runs here that could be told.
void Agent::tell_silence(const wire::Silence& silence) {
  if (host_.socket) host_.socket->tell_silence(silence.allowed);
  mpi_.allow_silence(silence.allowed);
  link_.send(wire::SilenceNoted{silence.number});
}

void Agent::watch_signals() {
  sigset_t wanted;
  sigemptyset(&wanted);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2})
    sigaddset(&wanted, number);
  signals_.reset(::signalfd(-1, &wanted, SFD_CLOEXEC | SFD_NONBLOCK));
  HV_CHECK(signals_, "signalfd: " + errno_text(errno));
  loop_.watch(signals_.get(), EPOLLIN, [this](std::uint32_t) { take_signal(); });
}

void Agent::take_signal() {
  signalfd_siginfo info{};
  bool child_has_ended = false;
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    const int number = static_cast<int>(info.ssi_signo);
    if (number == SIGCHLD) {
      child_has_ended = true;
    } else if (number == SIGUSR1 || number == SIGUSR2) {
      signal_from_outside(number);
    } else if (!std::exchange(leaves_when_done_, true)) {
      told_to_end(number);
    }
  }
  if (child_has_ended) reap();
}

// sbatch --signal sends it to each task of the step, which are the agents. Where Slurm signals
// every process of the step, the ranks that have been started already have it, too.
void Agent::signal_from_outside(int number) {
  const bool ranks_have_it =
      host_.wanted.slurm_signals_ranks && environment_.get_filled("SLURM_STEP_ID");
  forward_signal(number, ranks_have_it ? ranks_.all().size() : 0);
}

void Agent::told_to_end(int signal) {
  tell_own_end("its agent was ended by " + signal_text(signal));
  end_job(grace());
}

// Nobody at hvrun asked for it: an answer that it waits for will not come any more, and how the
// ranks end from now on, be it with exit code 0, is no end of theirs.
void Agent::tell_own_end(const std::string& words) {
  if (phase_ == Phase::kSweeping) {
    link_.send(wire::Note{words + " and ends the job there"});
  } else {
    const auto job = environment_.get_filled("SLURM_JOB_ID");
    link_.send(wire::Problem{
        words, job ? "Slurm ends a job at its time limit, and by scancel: 'scontrol show job " +
                         printable(*job) + "' says which"
                   : "find out what ends processes on that host"});
  }
}

void Agent::child_ended(pid_t pid, int status) {
  const ExitStatus end = ExitStatus::from_wait(status);
  if (inventory_ && inventory_->child_ended(pid, end)) return;
  if (check_ && check_->child_ended(pid, end)) return;
  if (pairs_ && pairs_->child_ended(pid, end)) return;
  if (stacks_.child_ended(pid, end)) return;
  mpi_.child_ended(pid, end);
  if (RankProcess* const rank = ranks_.by_pid(pid)) rank_ended(*rank, rank->end_of(end));
}

void Agent::rank_ended(RankProcess& rank, const ExitStatus& status) {
  rank.note_end(status);
  const MpiEnds mpi_ends = mpi_.rank_ended(rank.rank);
  wire::Exited exited;
  exited.pmi_end = mpi_ends.pmi;
  exited.pmix_end = mpi_ends.pmix;
  exited.rank = rank.rank;
  exited.by_signal = status.by_signal;
  exited.code = static_cast<std::uint32_t>(status.code);
  exited.signal_was_ours =
      status.by_signal && rank.signals_sent.test(static_cast<std::size_t>(status.code));
  exited.core_dumped = status.core_dumped;
  exited.wall_clock_ns = wall_clock_ns();
  const RankStanding standing = host_.socket->rank_ended(rank.rank);
  exited.left_unannounced = standing == RankStanding::kJoined;
  exited.never_joined = standing == RankStanding::kNeverJoined;
  exited.step_times = host_.socket->step_times(rank.rank);
  const auto left = host_.socket->left_ns().find(rank.rank);
  if (standing == RankStanding::kLeft && left != host_.socket->left_ns().end())
    exited.left_ns = left->second;
  // The others on this host need not wait for hvrun to hear of it, nor for a look at files.
  if (!exited.signal_was_ours && (!status.clean() || standing != RankStanding::kLeft)) {
    host_.socket->tell_loss(
        rank.rank, "ended with " + status.text() + exited.standing_words() + ", on this host");
  }
  if (!exited.signal_was_ours) exited.found = post_mortem_.of(rank, status, launch_);
  link_.send(exited);
  rank.look_at_streams();
}

void Agent::reap() {
  const bool has_any = reap_children([this](pid_t pid, int status) { child_ended(pid, status); });
  if (!has_children_) return leave_if_done();
  has_children_ = has_any || ranks_.is_starting();
  if (!ranks_.any_running()) mpi_.let_go();
  if (!has_children_) {
    ending_.nothing_left();
    ranks_.finish_streams();
  } else if (!ranks_.any_running() && !ending_.has_begun() && !inventory_ && !check_) {
    // What the ranks left behind would hold their streams open, and must not stay in any case. What
    // looks for the reason of a failure may answer first.
    end_job(grace());
  }
  leave_if_done();
}

void Agent::guard_lost() {
  loop_.unwatch(guard_life_.get());
  is_orphaned_ = true;
  leaves_when_done_ = true;
  exit_code_ = 1;
  tell_own_end("its agent's guard was killed, so that the agent ended its ranks while it could");
  end_job(std::min<Duration>(grace(), kMostGraceOfOrphans));
}

void Agent::hvrun_lost(const std::string& reason) {
  leaves_when_done_ = true;
  if (!said_empty_) exit_code_ = 1;
  // Seldom read by anybody: the stream that carried the job is broken.
  const std::string words = "hvrun-agent: " + reason + "; ending the job on this host\n";
  if (!said_empty_) (void)!::write(2, words.data(), words.size());
  ranks_.discard_streams();
  end_job(std::min<Duration>(grace(), kMostGraceOfOrphans));
}

void Agent::beat() {
  next_beat_ = loop_.call_after(silence_.interval(), [this] { beat(); });
  post_mortem_.look();
  if (link_.is_lost()) return;
  if (silence_.beat(now())) return link_.give_up("hvrun was silent for too long");
  if (!silence_.is_paused()) link_.send(wire::Ping{wall_clock_ns()});
}

void Agent::end_job(Duration grace) {
  inventory_.reset();
  check_.reset();
  start_no_more();
  if (has_children_) {
    ending_.begin(grace);
    reap();
  }
  leave_if_done();
}

// Whatever is left cannot be ended, so nothing is gained by waiting for the streams that it may
// hold.
void Agent::job_is_over() {
  has_children_ = false;
  for (const std::string& process : ending_.forbidden()) {
    link_.send(wire::Note{process + " belongs to another user and could not be ended"});
  }
  ranks_.finish_streams();
  leave_if_done();
}

void Agent::sweep_on() {
  if (!sweeper_->step()) {
    loop_.call_after(kSweepPause, [this] { sweep_on(); });
    return;
  }
  sweep_is_done_ = true;
  leaves_when_done_ = true;
  leave_if_done();
}

void Agent::leave_if_done() {
  if (!leaves_when_done_ || has_children_ || check_ || ranks_.any_open_stream() ||
      (sweeper_ && !sweep_is_done_))
    return;
  host_.cgroup.remove();  // what is stuck keeps its group
  mpi_.end();
  if (!link_.is_lost() && !is_orphaned_ && !std::exchange(said_empty_, true)) {
    link_.send(wire::Empty{sweeper_ ? sweeper_->stuck() : ending_.stuck()});
  }
  if (link_.is_lost() || link_.is_flushed()) loop_.stop();
}

}  // namespace hv::launcher
