// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/supervisor.h"

#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <mutex>
#include <set>
#include <utility>

#include "launcher/plan/common_environment.h"
#include "launcher/record/end_text.h"
#include "launcher/supervise/check_sequence.h"
#include "launcher/supervise/events/event_dispatch.h"
#include "launcher/supervise/hosts/agent_file.h"
#include "launcher/supervise/hosts/host_sweep.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/launch_sequence.h"
#include "launcher/supervise/report/absence_report.h"
#include "launcher/supervise/report/exit_summary.h"
#include "launcher/supervise/report/failure_probe.h"
#include "launcher/supervise/report/job_recorder.h"
#include "launcher/supervise/restarts.h"
#include "launcher/supervise/shutdown.h"
#include "launcher/supervise/stacks/stack_inquiry.h"
#include "launcher/supervise/streams/input_flow.h"
#include "launcher/supervise/streams/output_flow.h"
#include "launcher/supervise/timeouts.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/knob.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/contract/runtime_knobs.h"
#include "src/process/signals.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

SpawnOptions spawn_options(const JobSpec& spec, const HostList& list,
                           const Environment& environment, const CommonEnvironment& ranks) {
  SpawnOptions options;
  options.environment = environment;
  options.agent_program = find_agent_file();
  if (!list.this_machine) options.build_id = agent_digest(options.agent_program);
  options.start_timeout = spec.access.start_timeout;
  options.lost_after = spec.ending.lost_after;
  options.accept_new_host_keys = spec.access.ssh_accept_new;
  options.remote_shell = spec.access.remote_shell;
  options.reach = list.reach;
  options.by_srun = spec.access.spawner == SpawnerChoice::kSrun;
  const KnobReader knobs(runtime_knobs(), ranks.variables.as_environment());
  const std::string ports = knobs.text("HVRUN_PORT_RANGE");
  options.port_range = parse_port_range(ports).value_or(PortRange{});
  options.port_range.kept_for_others = static_cast<std::uint16_t>(spec.environment.master_port);
  return options;
}

// The ranks' own knobs, -x included: hvrun reports waits by the same limits, and a firewall that
// passes the ranks' ports must pass hvrun's own, too.
RankKnobs rank_knobs(const CommonEnvironment& ranks) {
  check_knobs_of_ranks(ranks);
  const KnobReader knobs(runtime_knobs(), ranks.variables.as_environment());
  const Duration end = bounded_seconds(knobs.seconds("HVRUN_STALL_SHUTDOWN_SECONDS"));
  const bool is_default = knobs.value("HVRUN_STALL_SHUTDOWN_SECONDS").origin == "default";
  return {knobs.text("HVRUN_PORT_RANGE"), knobs.text("HVRUN_INTERFACES"),
          bounded_seconds(knobs.seconds("HVRUN_STALL_SECONDS")), end,
          is_default ? Duration::zero() : end};
}

// HV_LOG's lines become events of the attempt that runs. From any thread.
class LogTarget {
 public:
  // nullptr: lines are dropped. Returns once no thread uses the former one.
  void set(JobEvents* events) {
    const std::lock_guard lock(mutex_);
    events_ = events;
  }
  void add(const std::string& line) {
    const std::lock_guard lock(mutex_);
    if (events_) events_->add(LineLogged{line});
  }

 private:
  std::mutex mutex_;
  JobEvents* events_ = nullptr;  // guarded by mutex_
};

LogTarget& log_target() {
  static auto* const target = new LogTarget;  // threads may log until the process ends
  return *target;
}

void log_line(const std::string& line) { log_target().add(line); }

// Coroutines that still wait refer to the Supervisor's members, so they are destroyed before these.
class JobLoop : public asio::io_context {
 public:
  JobLoop() : asio::io_context(1) {}
  void destroy_pending() { shutdown(); }
};

struct AttemptResult {
  int exit_code = 0;
  bool starts_again = false;
};

// One attempt of a job: the first, or a restart.
class Supervisor {
 public:
  // before: the attempt before this one; nullptr: this is the first.
  Supervisor(const JobSpec& spec, const HostList& list, const Environment& environment,
             CommonEnvironment ranks, SupervisedParts parts, const Supervisor* before)
      : job_(io_.get_executor(), spec),
        events_(io_.get_executor()),
        output_(job_, events_, std::move(parts.output)),
        console_(output_.room(), spec.report.verbose, job_.identity.begun),
        input_(job_, events_, console_),
        recorder_(job_, console_, std::move(parts.recording),
                  before ? before->recorder_.summary() : nullptr),
        spawner_(std::move(parts.spawner)),
        inquiry_(job_, console_),
        absence_(job_, console_, inquiry_),
        sweep_(job_, *spawner_, events_, [this] { return request_to_lost_host(context_); }),
        shutdown_(job_, sweep_, output_),
        context_{job_,        list,
                 *spawner_,   events_,
                 environment, std::move(ranks),
                 console_,    std::move(parts.check_way)},
        dispatch_(job_, events_, output_, input_, console_, absence_, inquiry_) {
    job_.knobs = rank_knobs(context_.ranks);
    if (!before) return;
    job_.identity.restarts = before->job_.identity.restarts + 1;
    job_.identity.first_begun = before->job_.identity.first_begun;
  }
  // Only once run() has returned that the job starts again: then no other thread uses this.
  ~Supervisor();
  Supervisor(const Supervisor&) = delete;
  Supervisor& operator=(const Supervisor&) = delete;

  AttemptResult run();
  CheckOutcome check();
  int next_restart() const { return job_.identity.restarts + 1; }
  // Takes over the signals that came after `before` had decided to start the job again. This
  // attempt handles signals since its constructor, so none is lost.
  void take_signals_of(Supervisor& before);
  void record_failed_restart(const Error& error) { recorder_.write_failed_restart(error); }

 private:
  void drive(asio::awaitable<void> conduct);
  asio::awaitable<void> conduct(AttemptResult* result, std::optional<Error>* error);
  asio::awaitable<void> conduct_check(CheckOutcome* outcome, std::optional<Error>* error);
  asio::awaitable<void> report_progress();
  asio::awaitable<JobEnd> launch_and_watch();
  asio::awaitable<JobEnd> end_failed_launch(const Error& failure);
  asio::awaitable<void> watch_ranks();
  asio::awaitable<void> query_exiting_ranks();
  asio::awaitable<void> await_time_limit();
  asio::awaitable<CheckReport> probe_failed_launch(const Error& failure);
  asio::awaitable<CheckReport> probe_failed_rank(const FailureCause& cause);
  JobEnd report_end();
  void report_grace(const JobEnd& end);
  void report_interruption(const JobEnd& end);
  asio::awaitable<AttemptResult> finish(JobEnd end);
  asio::awaitable<bool> await_restart(JobRecord* record, const LastLines& last_lines);
  RestartDecision decide(const JobRecord& record, const Status& written) const;
  void close_links();
  void stop_log();

  JobLoop io_;
  Job job_;
  JobEvents events_;
  OutputFlow output_;
  Console console_;
  InputFlow input_;
  JobRecorder recorder_;
  std::unique_ptr<Spawner> spawner_;
  StackInquiry inquiry_;
  AbsenceReport absence_;
  HostSweep sweep_;
  Shutdown shutdown_;
  LaunchContext context_;
  EventDispatch dispatch_;
};

// Asks every agent once which of its ranks are on their way out.
asio::awaitable<void> Supervisor::query_exiting_ranks() {
  const TimePoint sent = now();
  if (!co_await job_.query(sent + kMostCollection)) co_return;
  std::set<int> exiting, stopped;
  for (const Host& host : job_.members()) {
    if (!host.has_agent()) continue;
    const wire::QueryReply& ranks = host.answers.ranks;
    exiting.insert(ranks.exiting.begin(), ranks.exiting.end());
    stopped.insert(ranks.stopped.begin(), ranks.stopped.end());
  }
  job_.policy->stopped_ranks(std::move(stopped));
  job_.policy->exiting_ranks(exiting, sent);
}

// --timeout counts from the beginning of the first attempt, for a launch and for a check.
asio::awaitable<void> Supervisor::await_time_limit() {
  asio::steady_timer limit(io_, job_.identity.first_begun + *job_.spec.ending.timeout);
  co_await limit.async_wait(asio::use_awaitable);
  events_.add(TimeLimitReached{});
}

// Until all ranks have ended well, or the cause of a failure is known, or the job has to stop.
asio::awaitable<void> Supervisor::watch_ranks() {
  while (!job_.stop()) {
    sweep_.sweep_lost_hosts();
    if ((job_.have_ranks_ended() && !job_.policy->failed()) || job_.policy->decided(now()))
      co_return;
    if (job_.policy->failed()) {
      co_await query_exiting_ranks();
      if (job_.policy->decided(now())) co_return;
      co_await job_.change.wait(now() + kQueryInterval);
    } else {
      co_await job_.change.wait(TimePoint::max());
    }
  }
}

JobEnd Supervisor::report_end() {
  JobEnd end = end_of(job_);
  if (!end.error.empty()) console_.say_error(end.error, end.advice);
  return end;
}

// With a long --grace the user would else wonder.
void Supervisor::report_grace(const JobEnd& end) {
  const Duration grace = shutdown_.grace();
  if (end.state != "interrupted" || grace <= kDefaultGrace || job_.have_ranks_ended()) return;
  console_.say(signal_text(job_.stop()->signal) + ": the ranks have " +
               (job_.spec.ending.grace ? "--grace " : "") + format_duration(grace) +
               " to end, and a second signal ends them at once");
}

// Once nothing runs any more.
void Supervisor::report_interruption(const JobEnd& end) {
  if (end.state == "interrupted") console_.say("ended by " + signal_text(job_.stop()->signal));
}

// Called before hvrun sends End to the agents.
asio::awaitable<CheckReport> Supervisor::probe_failed_launch(const Error& failure) {
  FittingProbes fitting = fitting_probes({failure.what(), std::nullopt});
  const bool may_ranks_run = job_.stage.may_ranks_run();
  if (may_ranks_run) sweep_.sweep_lost_hosts();
  co_await probe_after_failure(context_, fitting,
                               may_ranks_run ? kProbesAfterRank : kProbesAfterLaunch);
  fitting.names.insert("reach");
  co_return findings_after_failure(context_, fitting.names);
}

asio::awaitable<CheckReport> Supervisor::probe_failed_rank(const FailureCause& cause) {
  const auto end = job_.policy->ends().find(*cause.rank);
  if (end == job_.policy->ends().end()) co_return CheckReport{};
  const Duration since = std::chrono::nanoseconds(wall_clock_ns() - end->second.time_ns);
  if (now() - since - job_.stage.ranks_begun() > kFirstSecondsOfRanks) co_return CheckReport{};
  std::string text;
  for (const std::string& line : output_.room().last_lines(static_cast<std::uint32_t>(*cause.rank)))
    text += line + "\n";
  const FittingProbes fitting = fitting_probes({text, end->second.status});
  if (fitting.names.empty()) co_return CheckReport{};
  const PlannedRank& rank = job_.plan().ranks.at(static_cast<std::size_t>(*cause.rank));
  co_await probe_after_failure(context_, fitting, kProbesAfterRank,
                               static_cast<std::size_t>(rank.host));
  co_return findings_after_failure(context_, fitting.names);
}

asio::awaitable<JobEnd> Supervisor::end_failed_launch(const Error& failure) {
  JobEnd end;
  end.found = co_await probe_failed_launch(failure);
  co_await shutdown_.end_hosts(false);
  end.state = "not_started";
  end.exit_code = static_cast<int>(failure.kind());
  end.error = failure.what();
  end.advice = failure.hint();
  end.seconds = seconds_since(job_.identity.begun);
  console_.say_error(end.error, end.advice);
  console_.say_lines(findings_text(record_of(job_, end), context_.printed_errors + end.error));
  co_return end;
}

asio::awaitable<JobEnd> Supervisor::launch_and_watch() {
  std::optional<Error> failure;
  try {
    co_await launch_job(context_);
  } catch (const Interrupted&) {
  } catch (const Error& error) {
    failure = error;
  }
  if (failure) co_return co_await end_failed_launch(*failure);
  if (!job_.stop()) {
    input_.start();
    recorder_.write_started();
    co_await watch_ranks();
  }
  if (job_.stop() && job_.stop()->wants_stacks()) co_await inquiry_.report_before_end();
  // Judged before hvrun ends the ranks that still run.
  JobEnd end = report_end();
  if (end.cause && end.cause->rank) end.found = co_await probe_failed_rank(*end.cause);
  report_grace(end);
  co_await shutdown_.end_hosts(true);
  report_interruption(end);
  if (end.cause && end.cause->host)
    end.found = findings_after_failure(context_, probes_of_lost_host());
  co_return end;
}

void Supervisor::close_links() {
  for (const Host& host : job_.hosts)
    if (host.link) host.link->close();
}

void Supervisor::stop_log() {
  set_log_sink(nullptr);
  log_target().set(nullptr);
}

// written: that of the attempt's record, without which `hvrun explain` misses the restart.
RestartDecision Supervisor::decide(const JobRecord& record, const Status& written) const {
  const std::optional<StopReason>& stop = job_.stop();
  EndedAttempt ended{record.state, record.exit_code, job_.identity.restarts, stop.has_value()};
  if (stop && stop->kind == StopReason::Kind::kTimeout)
    ended.reason = "--timeout " + format_duration(*job_.spec.ending.timeout) + " is over";
  else if (stop && stop->kind == StopReason::Kind::kSignal)
    ended.reason = "hvrun was sent " + signal_text(stop->signal);
  else if (job_.signals.forwarded)
    ended.reason = "the job was sent " + signal_text(*job_.signals.forwarded);
  else if (job_.signals.is_slurm_ending)
    ended.reason = "Slurm has sent its agents SIGTERM, and so ends it";
  else if (!written.ok())
    ended.reason = written.message;
  return decide_restart(ended, job_.spec.ending);
}

// True: the job starts again, and the time before that is over. The record becomes that of the
// whole job where hvrun is told to end meanwhile.
asio::awaitable<bool> Supervisor::await_restart(JobRecord* record, const LastLines& last_lines) {
  RestartDecision decision = decide(*record, Status::success());
  if (decision.delay) {
    record->attempt.is_restarted = true;
    const Status written = co_await recorder_.write_attempt(*record, last_lines);
    if (written.ok()) {
      console_.say(restart_text(*record, *decision.delay, job_.spec.ending.restarts));
      const std::function<bool()> is_signalled = [this] {
        return job_.signals.forwarded || job_.signals.is_slurm_ending;
      };
      co_await job_.until(is_signalled, now() + *decision.delay);
      co_await shutdown_.drain();  // what is not written by then cannot outlive this attempt
    }
    decision = decide(*record, written);
    if (decision.delay) co_return true;
    record->attempt.is_restarted = false;
    if (job_.stop()) {
      const JobEnd stopped = report_end();
      report_interruption(stopped);
      record->state = stopped.state;
      record->exit_code = stopped.exit_code;
      record->error = stopped.error;
      record->advice = stopped.advice;
      co_return false;
    }
  }
  if (!decision.why_not.empty()) console_.say(decision.why_not);
  co_return false;
}

asio::awaitable<AttemptResult> Supervisor::finish(JobEnd end) {
  input_.close();
  close_links();
  shutdown_.begin_output_wait();
  co_await shutdown_.drain();
  // The last bytes could not be written, or the user gave up waiting: the job has not ended well.
  if (end.exit_code == 0 && job_.stop()) {
    end = report_end();
    report_interruption(end);
  }
  end.lost_output_bytes = output_.ledger().lost_bytes();
  bool is_cause_above =
      end.cause && end.cause->rank &&
      output_.room().are_last_lines_above(static_cast<std::uint32_t>(*end.cause->rank));
  if (const std::string text = output_.ledger().lost_words(); !text.empty()) {
    console_.say(text);
    is_cause_above = false;
  }
  const LastLines last_lines = [this](int rank) {
    return output_.room().last_lines(static_cast<std::uint32_t>(rank));
  };
  // The failure comes last, where it is read first.
  JobRecord record = record_of(job_, end);
  const std::string training = job_.spec.output.training_summary ? training_summary(record) : "";
  const std::string summary = end_text(record, last_lines, is_cause_above && training.empty());
  console_.say_lines(training + summary);
  if (end.cause) console_.say_lines(findings_text(record, summary));
  console_.report_phase("ended");
  AttemptResult result;
  result.starts_again = co_await await_restart(&record, last_lines);
  result.exit_code = record.exit_code;
  if (!result.starts_again) {
    result.exit_code = co_await recorder_.write_end(record, last_lines);
    co_await shutdown_.drain();
  }
  stop_log();
  output_.results().finish_within(kLastMessageTimeout);
  if (job_.stop()) {
    output_.room().finish_within(kLastMessageTimeout);
  } else {
    output_.room().finish();
  }
  co_return result;
}

asio::awaitable<void> Supervisor::conduct(AttemptResult* result, std::optional<Error>* error) {
  const Status written = co_await recorder_.write_first();
  if (written.ok() || job_.stop()) {
    asio::co_spawn(io_, recorder_.renew(), asio::detached);
    JobEnd end = co_await launch_and_watch();
    co_await spawner_->tidy_up();
    *result = co_await finish(std::move(end));
  } else {
    error->emplace(ErrorKind::kUsage, written.message,
                   "give --output-dir a directory that this user can write to");
    stop_log();
    output_.room().finish_within(kLastMessageTimeout);
  }
  io_.stop();
}

// On a terminal, when a check takes longer than a second.
asio::awaitable<void> Supervisor::report_progress() {
  asio::steady_timer timer(io_);
  std::string reported;
  for (;;) {
    timer.expires_after(kProgressInterval);
    co_await timer.async_wait(asio::use_awaitable);
    const std::string progress = progress_of_check(job_);
    if (!progress.empty() && progress != reported) console_.say(progress);
    reported = progress;
  }
}

// No process of the job is left on any host when this returns.
asio::awaitable<void> Supervisor::conduct_check(CheckOutcome* outcome,
                                                std::optional<Error>* error) {
  try {
    co_await check_job(context_, &outcome->input);
  } catch (const Interrupted&) {
  } catch (const Error& thrown) {
    *error = thrown;
  }
  JobEnd end;
  if (job_.stop()) end = report_end();
  outcome->exit_code = end.exit_code;
  co_await shutdown_.end_hosts(false);
  report_interruption(end);
  co_await spawner_->tidy_up();
  close_links();
  co_await shutdown_.drain();
  stop_log();
  output_.room().finish_within(kLastMessageTimeout);
  io_.stop();
}

CheckOutcome Supervisor::check() {
  CheckOutcome outcome;
  std::optional<Error> error;
  if (::isatty(STDERR_FILENO) == 1) asio::co_spawn(io_, report_progress(), asio::detached);
  drive(conduct_check(&outcome, &error));
  if (error) throw Error(*error);
  return outcome;
}

Supervisor::~Supervisor() {
  io_.destroy_pending();
  for (Host& host : job_.hosts) host.drop_link();  // channels end before their spawner
}

void Supervisor::take_signals_of(Supervisor& before) {
  before.io_.restart();
  before.io_.poll();
  if (before.job_.stop()) job_.request_stop(*before.job_.stop());
  job_.signals.forwarded = before.job_.signals.forwarded;
  job_.signals.is_slurm_ending = before.job_.signals.is_slurm_ending;
}

AttemptResult Supervisor::run() {
  AttemptResult result;
  std::optional<Error> error;
  drive(conduct(&result, &error));
  if (error && job_.identity.restarts > 0) recorder_.write_failed_restart(*error);
  if (error) throw Error(*error);
  return result;
}

void Supervisor::drive(asio::awaitable<void> conduct) {
  log_target().set(&events_);
  set_log_sink(log_line);
  dispatch_.start();
  const auto rethrow = [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  };
  if (job_.spec.ending.timeout) asio::co_spawn(io_, await_time_limit(), rethrow);
  asio::co_spawn(io_, std::move(conduct), rethrow);
  io_.run();
}

}  // namespace

namespace {

SupervisedParts real_parts(const JobSpec& spec, const HostList& list,
                           const Environment& environment, const CommonEnvironment& ranks) {
  const SpawnOptions options = spawn_options(spec, list, environment, ranks);
  const WayCheck check = [options](const std::vector<HostTarget>& hosts) {
    check_way(options, hosts);
  };
  return {make_spawner(options), output_options(spec, environment), check};
}

// Kept for ever, unless the job starts again: threads that stay blocked in a read or write may
// still refer to one.
std::vector<std::unique_ptr<Supervisor>>& supervisors() {
  static auto* const all = new std::vector<std::unique_ptr<Supervisor>>;
  return *all;
}

using MakeAttempt = std::function<std::unique_ptr<Supervisor>(const Supervisor* before)>;

// Replaces the last supervisor by the next attempt. Signals are handled without a gap.
void begin_next_attempt(const MakeAttempt& make) {
  const std::unique_ptr<Supervisor> before = std::move(supervisors().back());
  supervisors().pop_back();
  try {
    supervisors().push_back(make(before.get()));
  } catch (const Error& error) {
    before->record_failed_restart(error);
    throw;
  }
  supervisors().back()->take_signals_of(*before);
}

int run_attempts(const JobSpec& spec, const HostList& list, const Environment& environment,
                 const CommonEnvironment& ranks, const MakeParts& make_parts) {
  const MakeAttempt make = [&](const Supervisor* before) {
    const JobSpec own = spec_of_attempt(spec, before ? before->next_restart() : 0);
    return std::make_unique<Supervisor>(own, list, environment, ranks, make_parts(own), before);
  };
  supervisors().push_back(make(nullptr));
  for (;;) {
    const AttemptResult result = supervisors().back()->run();
    if (!result.starts_again) return result.exit_code;
    begin_next_attempt(make);
  }
}

}  // namespace

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  const CommonEnvironment& ranks) {
  const MakeParts make_parts = [&](const JobSpec& own) {
    return real_parts(own, list, environment, ranks);
  };
  return run_attempts(spec, list, environment, ranks, make_parts);
}

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  const MakeParts& make_parts) {
  return run_attempts(spec, list, environment, common_environment(spec, environment), make_parts);
}

CheckOutcome check_hosts(const JobSpec& spec, const HostList& list, const Environment& environment,
                         CommonEnvironment ranks) {
  SupervisedParts parts = real_parts(spec, list, environment, ranks);
  supervisors().push_back(std::make_unique<Supervisor>(spec, list, environment, std::move(ranks),
                                                       std::move(parts), nullptr));
  return supervisors().back()->check();
}

}  // namespace hv::launcher
