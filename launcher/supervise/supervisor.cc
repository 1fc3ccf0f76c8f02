// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/supervisor.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <utility>

#include "launcher/plan/common_environment.h"
#include "launcher/record/end_words.h"
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

OutputOptions output_options(const JobSpec& spec, const Environment& environment) {
  OutputOptions options;
  options.label = spec.output.label;
  options.timestamp = spec.output.timestamp;
  options.directory = spec.output.output_directory;
  options.stdout_is_terminal = ::isatty(1) == 1;
  options.stderr_is_terminal = ::isatty(2) == 1;
  options.colour =
      environment.get_or("NO_COLOR", "").empty() && environment.get_or("TERM", "dumb") != "dumb";
  return options;
}

// The ranks' own knobs, -x included: hvrun reports waits by the same limits, and a firewall that
// passes the ranks' ports must pass hvrun's own, too.
RankKnobs rank_knobs(const CommonEnvironment& ranks) {
  check_knobs_of_ranks(ranks);
  const KnobReader knobs(runtime_knobs(), ranks.variables.as_environment());
  return {knobs.text("HVRUN_PORT_RANGE"), knobs.text("HVRUN_INTERFACES"),
          bounded_seconds(knobs.seconds("HVRUN_STALL_SECONDS")),
          bounded_seconds(knobs.seconds("HVRUN_STALL_SHUTDOWN_SECONDS"))};
}

// HV_LOG's lines become events of the job that runs. From any thread.
std::atomic<JobEvents*> log_events{nullptr};

void log_line(const std::string& line) {
  if (JobEvents* const events = log_events) events->add(LineLogged{line});
}

class Supervisor {
 public:
  Supervisor(const JobSpec& spec, const HostList& list, const Environment& environment,
             CommonEnvironment ranks, SupervisedParts parts)
      : job_(io_.get_executor(), spec),
        events_(io_.get_executor()),
        output_(job_, events_, std::move(parts.output)),
        console_(output_.room(), spec.report.verbose, job_.identity.begun),
        input_(job_, events_, console_),
        recorder_(job_.spec, console_),
        spawner_(std::move(parts.spawner)),
        inquiry_(job_, console_),
        absence_(job_, console_, inquiry_),
        sweep_(job_, *spawner_, events_, console_,
               [this] { return request_to_lost_host(context_); }),
        shutdown_(job_, sweep_, output_),
        context_{job_,        list,
                 *spawner_,   events_,
                 environment, std::move(ranks),
                 console_,    std::move(parts.check_way)},
        dispatch_(job_, events_, output_, input_, console_, absence_, inquiry_) {
    job_.knobs = rank_knobs(context_.ranks);
  }

  int run();
  CheckOutcome check();

 private:
  void drive(asio::awaitable<void> conduct);
  asio::awaitable<void> conduct(int* exit_code);
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
  asio::awaitable<int> finish(JobEnd end);
  void close_links();
  void stop_log();

  asio::io_context io_{1};
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

// One round: every agent reports which of its ranks are on their way out.
asio::awaitable<void> Supervisor::query_exiting_ranks() {
  const TimePoint sent = now();
  if (!co_await job_.query(sent + kMostCollection)) co_return;
  std::set<int> exiting, stopped;
  for (const Host& host : job_.members()) {
    if (!host.is_there()) continue;
    const wire::QueryReply& ranks = host.answers.ranks;
    exiting.insert(ranks.exiting.begin(), ranks.exiting.end());
    stopped.insert(ranks.stopped.begin(), ranks.stopped.end());
  }
  job_.policy->stopped_ranks(std::move(stopped));
  job_.policy->exiting_ranks(exiting, sent);
}

// --timeout counts from the beginning, for a launch and for a check.
asio::awaitable<void> Supervisor::await_time_limit() {
  asio::steady_timer limit(io_, job_.identity.begun + *job_.spec.ending.timeout);
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
  if (end.state == "interrupted")
    console_.say("ended by " + signal_text(job_.stop()->signal));
  else if (!end.error.empty())
    console_.say_error(end.error, end.advice);
  return end;
}

// Before its agents are told to end.
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
  console_.say_lines(findings_text(record_of(job_, end), end.error));
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
    if (const Status written = recorder_.write_running(record_of(job_)); !written.ok())
      job_.request_stop({StopReason::Kind::kOutputFailed, SIGPIPE, written.message});
    co_await watch_ranks();
  }
  if (job_.stop() && job_.stop()->wants_stacks()) co_await inquiry_.report_before_end();
  // Judged before hvrun ends the ranks that still run.
  JobEnd end = report_end();
  if (end.cause && end.cause->rank) end.found = co_await probe_failed_rank(*end.cause);
  co_await shutdown_.end_hosts(true);
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
  log_events = nullptr;
}

asio::awaitable<int> Supervisor::finish(JobEnd end) {
  input_.close();
  close_links();
  shutdown_.begin_output_wait();
  co_await shutdown_.drain();
  // The last bytes could not be written, or the user gave up waiting: the job has not ended well.
  if (end.exit_code == 0 && job_.stop()) end = report_end();
  end.lost_output_bytes = output_.ledger().lost_bytes();
  if (const std::string text = output_.ledger().lost_words(); !text.empty()) console_.say(text);
  const LastLines last_lines = [this](int rank) {
    return output_.room().last_lines(static_cast<std::uint32_t>(rank));
  };
  // The failure comes last, where it is read first.
  const JobRecord record = record_of(job_, end);
  const std::string training = job_.spec.output.training_summary ? training_summary(record) : "";
  const std::string summary = end_text(record, last_lines);
  console_.say_lines(training + summary);
  if (end.cause) console_.say_lines(findings_text(record, summary));
  const int exit_code = recorder_.write_end(record, last_lines);
  console_.report_phase("ended");
  co_await shutdown_.drain();
  stop_log();
  if (job_.stop()) {
    output_.room().finish_within(kLastMessageTimeout);
  } else {
    output_.room().finish();
  }
  co_return exit_code;
}

asio::awaitable<void> Supervisor::conduct(int* exit_code) {
  JobEnd end = co_await launch_and_watch();
  co_await spawner_->tidy_up();
  *exit_code = co_await finish(std::move(end));
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
  if (job_.stop()) outcome->exit_code = report_end().exit_code;
  co_await shutdown_.end_hosts(false);
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

int Supervisor::run() {
  if (const Status written = recorder_.write_running(record_of(job_)); !written.ok()) {
    throw Error(ErrorKind::kUsage, written.message,
                "give --output-dir a directory that this user can write to");
  }
  int exit_code = 0;
  drive(conduct(&exit_code));
  return exit_code;
}

void Supervisor::drive(asio::awaitable<void> conduct) {
  log_events = &events_;
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

Supervisor& make_supervisor(const JobSpec& spec, const HostList& list,
                            const Environment& environment, CommonEnvironment ranks,
                            SupervisedParts parts) {
  // Never destroyed: threads that stay blocked in a read or write may still refer to it.
  static std::vector<Supervisor*>* const supervisors = new std::vector<Supervisor*>;
  supervisors->push_back(
      new Supervisor(spec, list, environment, std::move(ranks), std::move(parts)));
  return *supervisors->back();
}

Supervisor& make_real_supervisor(const JobSpec& spec, const HostList& list,
                                 const Environment& environment) {
  CommonEnvironment ranks = common_environment(spec, environment);
  SupervisedParts parts = real_parts(spec, list, environment, ranks);
  return make_supervisor(spec, list, environment, std::move(ranks), std::move(parts));
}

}  // namespace

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment) {
  return make_real_supervisor(spec, list, environment).run();
}

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  SupervisedParts parts) {
  return make_supervisor(spec, list, environment, common_environment(spec, environment),
                         std::move(parts))
      .run();
}

CheckOutcome check_hosts(const JobSpec& spec, const HostList& list,
                         const Environment& environment) {
  return make_real_supervisor(spec, list, environment).check();
}

}  // namespace hv::launcher
