// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/supervisor.h"

#include <unistd.h>

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstdio>
#include <utility>

#include "launcher/output/output_ledger.h"
#include "launcher/plan/rank_environment.h"
#include "launcher/record/end_words.h"
#include "launcher/record/job_folder.h"
#include "launcher/record/record_json.h"
#include "launcher/supervise/absence_report.h"
#include "launcher/supervise/check_sequence.h"
#include "launcher/supervise/ending.h"
#include "launcher/supervise/event_router.h"
#include "launcher/supervise/exit_summary.h"
#include "launcher/supervise/failure_probe.h"
#include "launcher/supervise/hosts/agent_file.h"
#include "launcher/supervise/hosts/host_sweep.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/launch_sequence.h"
#include "launcher/supervise/signal_watch.h"
#include "launcher/supervise/stacks/stack_inquiry.h"
#include "launcher/supervise/stdin_forwarder.h"
#include "launcher/supervise/summary_file.h"
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

Environment environment_of_ranks(const JobSpec& spec, const Environment& environment) {
  return Environment::from_entries(common_environment(spec, environment).entries);
}

SpawnOptions spawn_options(const JobSpec& spec, const HostList& list,
                           const Environment& environment) {
  SpawnOptions options;
  options.environment = environment;
  options.agent_program = find_agent_file();
  if (!list.this_machine) options.build_id = agent_digest(options.agent_program);
  options.start_timeout = spec.start_timeout;
  options.accept_new_host_keys = spec.ssh_accept_new;
  options.remote_shell = spec.remote_shell;
  options.reach = list.reach;
  options.by_srun = spec.spawner == SpawnerChoice::kSrun;
  const Environment ranks = environment_of_ranks(spec, environment);
  const std::string ports = KnobReader(runtime_knobs(), ranks).text("HVRUN_PORT_RANGE");
  options.port_range = parse_port_range(ports).value_or(PortRange{});
  options.port_range.kept_for_others = static_cast<std::uint16_t>(spec.master_port);
  return options;
}

OutputOptions output_options(const JobSpec& spec, const Environment& environment) {
  OutputOptions options;
  options.label = spec.label;
  options.timestamp = spec.timestamp;
  options.directory = spec.output_directory;
  options.stdout_is_terminal = ::isatty(1) == 1;
  options.stderr_is_terminal = ::isatty(2) == 1;
  options.colour =
      environment.get_or("NO_COLOR", "").empty() && environment.get_or("TERM", "dumb") != "dumb";
  return options;
}

// The ranks' own knobs, -x included: what they wait for before they have met, hvrun tells, and a
// firewall that lets their ports pass is one for hvrun's own, too.
void take_knobs_of_ranks(const JobSpec& spec, const Environment& environment, Job* job) {
  check_knobs_of_ranks(spec, environment);
  const Environment ranks = environment_of_ranks(spec, environment);
  const KnobReader knobs(runtime_knobs(), ranks);
  job->stall_limit = bounded_seconds(knobs.seconds("HVRUN_STALL_SECONDS"));
  job->stall_end = bounded_seconds(knobs.seconds("HVRUN_STALL_SHUTDOWN_SECONDS"));
  job->port_range = knobs.text("HVRUN_PORT_RANGE");
  job->interfaces = knobs.text("HVRUN_INTERFACES");
}

class Supervisor {
 public:
  Supervisor(const JobSpec& spec, const HostList& list, const Environment& environment,
             SupervisedParts parts)
      : environment_(environment),
        job_(io_.get_executor(), spec),
        summary_(spec.summary_file),
        spawner_(std::move(parts.spawner)),
        room_(std::move(parts.output), written_callback(), broken_callback()),
        job_file_(job_.spec.output_directory),
        router_(job_, {[this](const wire::Output& output) { take_output(output); },
                       [this](std::uint32_t bytes) {
                         if (input_) input_->accepted(bytes);
                       },
                       [this](const std::string& text) { say(text); },
                       [this](const wire::FenceStalled& stall) { absence_.fence_stalled(stall); },
                       [this](const wire::TensorStalled& stall) { inquiry_.tensor_stalled(stall); },
                       [this] { absence_.begun_by_two_ways(); }}),
        signals_(job_,
                 [this](bool was_stopped) {
                   if (input_) input_->has_been_stopped(was_stopped);
                 }),
        inquiry_(job_, [this](const std::string& text) { say(text); }),
        absence_(
            job_, [this](const std::string& text) { say(text); },
            [this](const std::vector<int>& absent, Duration waited) {
              inquiry_.stalled({"where those stand that are not there, and one that waits:", absent,
                                now() - waited});
            }),
        sweep_(
            job_, *spawner_, router_, [this] { return request_to_lost_host(context_); },
            [this](const std::string& text) { say(text); }),
        ending_(job_, sweep_),
        context_{job_,
                 list,
                 *spawner_,
                 router_,
                 environment_,
                 [this](const std::string& phase) { tell_phase(phase); },
                 [this](const std::string& text) { say(text); },
                 std::move(parts.check_way)} {
    take_knobs_of_ranks(job_.spec, environment, &job_);
  }

  int run();
  CheckOutcome check();

 private:
  // Output room callbacks come from its writer threads.
  std::function<void(std::uint32_t, std::size_t)> written_callback() {
    return [this](std::uint32_t rank, std::size_t bytes) {
      asio::post(io_, [=, this] { return_credit(rank, bytes); });
    };
  }
  std::function<void(const std::string&, int, int)> broken_callback() {
    return [this](const std::string& what, int error, int stream) {
      asio::post(io_, [=, this] { output_broke(what, error, stream); });
    };
  }
  void take_output(const wire::Output& output);
  void return_credit(std::uint32_t rank, std::size_t bytes);
  std::string too_long() const;
  void output_broke(const std::string& what, int error, int stream);
  // HV_LOG's lines go the way of all of hvrun's words; from any thread.
  static void log_line(const std::string& line);
  static inline std::atomic<Supervisor*> logging_{nullptr};
  void say(const std::string& text) { room_.note("hvrun: " + text); }
  void say_error(const std::string& what, const std::string& advice) {
    say("error: " + what + (advice.empty() ? "" : "\n  try: " + advice));
  }
  void say_lines(const std::string& text) {
    for (const std::string& line : split(text, '\n'))
      if (!line.empty()) room_.note(line);
  }
  void tell_phase(const std::string& phase);
  void start_stdin();

  void drive(asio::awaitable<void> conduct);
  asio::awaitable<void> conduct();
  asio::awaitable<void> conduct_check(CheckOutcome* outcome);
  asio::awaitable<void> tell_progress();
  asio::awaitable<JobEnd> launch_and_watch();
  asio::awaitable<void> watch_ranks();
  asio::awaitable<void> ask_who_is_exiting();
  asio::awaitable<void> keep_time_limit();
  JobEnd judge();
  asio::awaitable<void> look_into(const Error& failure);
  asio::awaitable<void> look_into_rank(const Verdict& verdict);
  Status record_begin() const;
  int record_end(const JobRecord& record, const LastLines& last_lines);
  asio::awaitable<void> finish(JobEnd end);

  const Environment& environment_;
  asio::io_context io_{1};
  Job job_;
  SummaryFile summary_;
  std::unique_ptr<Spawner> spawner_;
  OutputRoom room_;
  const JobFile job_file_;
  EventRouter router_;
  SignalWatch signals_;
  StackInquiry inquiry_;
  AbsenceReport absence_;
  HostSweep sweep_;
  Ending ending_;
  LaunchContext context_;
  std::unique_ptr<StdinForwarder> input_;
  OutputLedger ledger_;
  CheckReport found_;  // by a failure's probes
  int exit_code_ = 0;
  std::optional<Error> check_error_;
};

void Supervisor::take_output(const wire::Output& output) {
  ledger_.arrived(output.rank, output.bytes.size());
  if (ending_.discards_output()) return;
  room_.add({output.rank, output.stream, output.wall_clock_ns, output.bytes, output.end});
}

void Supervisor::return_credit(std::uint32_t rank, std::size_t bytes) {
  if (rank >= job_.ranks.size()) return;
  const std::uint32_t credit = ledger_.written(rank, bytes);
  HostState& host = job_.hosts[static_cast<std::size_t>(job_.plan.ranks[rank].host)];
  if (credit > 0 && host.is_there()) host.link->send(wire::Credit{rank, credit});
}

void Supervisor::output_broke(const std::string& what, int error, int stream) {
  const bool reader_left = error == EPIPE && stream != 0;
  job_.request_stop(
      {reader_left ? StopRequest::Kind::kOutputClosed : StopRequest::Kind::kOutputFailed, SIGPIPE,
       what + ": " + errno_text(error)});
}

std::string Supervisor::too_long() const {
  const std::string running = job_.running_ranks();
  return "the job ran longer than --timeout " + seconds_text(*job_.spec.timeout) +
         (running.empty() ? "" : "; still running: " + running);
}

void Supervisor::tell_phase(const std::string& phase) {
  if (!job_.spec.verbose) return;
  char text[64];
  std::snprintf(text, sizeof text, "%7.3f s  ", seconds_since(job_.begun));
  say(text + phase);
}

void Supervisor::start_stdin() {
  if (!job_.spec.forward_stdin) return;
  const auto deliver = [this](std::string bytes) {
    asio::post(io_, [this, piece = std::move(bytes)]() mutable {
      HostState& host = job_.hosts.at(0);
      const bool end = piece.empty();
      if (host.is_there()) host.link->send(wire::Stdin{0, end, std::move(piece)});
    });
  };
  const auto on_error = [this](int error) {
    asio::post(io_, [this, error] {
      say("warning: read standard input: " + errno_text(error) + "; rank 0 gets no more of it");
    });
  };
  input_ = std::make_unique<StdinForwarder>(wire::kStdinWindow, StdinCallbacks{deliver, on_error});
}

// One round: every agent says which of its ranks are on their way out.
asio::awaitable<void> Supervisor::ask_who_is_exiting() {
  const TimePoint sent = now();
  if (!co_await job_.query(sent + kMostCollection)) co_return;
  std::set<int> exiting, stopped;
  for (const HostState& host : job_.hosts) {
    if (!host.is_there()) continue;
    exiting.insert(host.exiting.begin(), host.exiting.end());
    stopped.insert(host.stopped.begin(), host.stopped.end());
  }
  job_.policy->stopped_ranks(std::move(stopped));
  job_.policy->exiting_ranks(exiting, sent);
}

// --timeout counts from the beginning, whatever the job is about.
asio::awaitable<void> Supervisor::keep_time_limit() {
  asio::steady_timer limit(io_, job_.begun + *job_.spec.timeout);
  co_await limit.async_wait(asio::use_awaitable);
  job_.request_stop({StopRequest::Kind::kTimeout, 0, {}});
}

// Until all ranks have ended well, or the cause of a failure is known, or somebody wants the job to
// stop.
asio::awaitable<void> Supervisor::watch_ranks() {
  while (!job_.stop) {
    sweep_.look_for_lost_hosts();
    if ((job_.ranks_ended() && !job_.policy->failed()) || job_.policy->decided(now())) co_return;
    if (job_.policy->failed()) {
      co_await ask_who_is_exiting();
      if (job_.policy->decided(now())) co_return;
      co_await job_.change.wait(now() + kQueryInterval);
    } else {
      co_await job_.change.wait(TimePoint::max());
    }
  }
}

JobEnd Supervisor::judge() {
  JobEnd end;
  end.state = "ok";
  if (job_.stop) {
    switch (job_.stop->kind) {
      case StopRequest::Kind::kSignal:
        end.state = "interrupted";
        end.exit_code = 128 + job_.stop->signal;
        say("ended by " + signal_text(job_.stop->signal));
        break;
      case StopRequest::Kind::kTimeout:
        end.state = "timeout";
        end.exit_code = static_cast<int>(ErrorKind::kTimeout);
        end.error = too_long();
        end.advice = "a longer --timeout, or look where its ranks stood, above";
        say_error(end.error, end.advice);
        break;
      case StopRequest::Kind::kStalled:
        end.state = "timeout";
        end.exit_code = static_cast<int>(ErrorKind::kTimeout);
        end.error = job_.stop->what;
        end.advice = job_.stop->advice;
        say_error(end.error, end.advice);
        break;
      case StopRequest::Kind::kTwoMpis:
        end.state = "not_started";
        end.exit_code = static_cast<int>(ErrorKind::kStart);
        end.error = job_.stop->what;
        end.advice = job_.stop->advice;
        say_error(end.error, end.advice);
        break;
      case StopRequest::Kind::kOutputClosed:
        end.state = "output_closed";
        end.exit_code = 128 + SIGPIPE;
        break;
      case StopRequest::Kind::kOutputFailed:
        end.state = "output_failed";
        end.exit_code = static_cast<int>(ErrorKind::kStart);
        end.error = job_.stop->what + "; the job was ended so that no output is lost unseen";
        end.advice = "make room there, or send the output elsewhere";
        say_error(end.error, end.advice);
        break;
    }
  } else if (job_.policy && job_.policy->failed()) {
    end.verdict = job_.policy->verdict();
    end.state = end.verdict->host ? "host_lost" : "rank_failed";
    end.exit_code = end.verdict->exit_code;
  }
  end.seconds = seconds_since(job_.begun);
  return end;
}

// Before its agents are told to end.
asio::awaitable<void> Supervisor::look_into(const Error& failure) {
  FittingProbes fitting = fitting_probes({failure.what(), std::nullopt});
  if (job_.ranks_may_run) sweep_.look_for_lost_hosts();
  co_await look_after_failure(context_, fitting,
                              job_.ranks_may_run ? kProbesAfterRank : kProbesAfterLaunch);
  fitting.names.insert("reach");
  found_ = found_after_failure(context_, fitting.names);
}

asio::awaitable<void> Supervisor::look_into_rank(const Verdict& verdict) {
  const auto end = job_.policy->ends().find(*verdict.rank);
  if (end == job_.policy->ends().end()) co_return;
  const Duration since = std::chrono::nanoseconds(wall_clock_ns() - end->second.time_ns);
  if (now() - since - job_.ranks_begun > kFirstSecondsOfRanks) co_return;
  std::string words;
  for (const std::string& line : room_.last_lines(static_cast<std::uint32_t>(*verdict.rank)))
    words += line + "\n";
  const FittingProbes fitting = fitting_probes({words, end->second.status});
  if (fitting.names.empty()) co_return;
  const PlannedRank& rank = job_.plan.ranks.at(static_cast<std::size_t>(*verdict.rank));
  co_await look_after_failure(context_, fitting, kProbesAfterRank,
                              static_cast<std::size_t>(rank.host));
  found_ = found_after_failure(context_, fitting.names);
}

asio::awaitable<JobEnd> Supervisor::launch_and_watch() {
  std::optional<Error> failure;
  try {
    co_await launch_job(context_);
  } catch (const Interrupted&) {
  } catch (const Error& error) {
    failure = error;
  }
  if (failure) {
    co_await look_into(*failure);
    co_await ending_.end_hosts(false);
    JobEnd end;
    end.state = "not_started";
    end.exit_code = static_cast<int>(failure->kind());
    end.error = failure->what();
    end.advice = failure->hint();
    end.seconds = seconds_since(job_.begun);
    end.found = found_;
    say_error(end.error, end.advice);
    say_lines(findings_text(record_of(job_, end), end.error));
    co_return end;
  }
  if (!job_.stop) {
    start_stdin();
    if (const Status written = record_begin(); !written.ok())
      job_.request_stop({StopRequest::Kind::kOutputFailed, SIGPIPE, written.message});
    co_await watch_ranks();
  }
  if (job_.stop && job_.stop->wants_stacks()) co_await inquiry_.tell_before_end();
  // Judged before the ranks that still run are ended by us.
  JobEnd end = judge();
  if (end.verdict && end.verdict->rank) co_await look_into_rank(*end.verdict);
  co_await ending_.end_hosts(true);
  if (end.verdict && end.verdict->host)
    found_ = found_after_failure(context_, probes_of_lost_host());
  co_return end;
}

Status Supervisor::record_begin() const {
  return job_file_.write(
      record_as_json(record_of(job_), [](int) { return std::vector<std::string>(); }));
}

// The job's exit code: a record that is lost is as output that is.
int Supervisor::record_end(const JobRecord& record, const LastLines& last_lines) {
  const std::string json = record_as_json(record, last_lines);
  if (const Status written = summary_.write(json); !written.ok())
    say("warning: " + written.message);
  const Status written = job_file_.write(json);
  if (written.ok()) return record.exit_code;
  say_error(written.message, "make room there, or send the output elsewhere");
  return record.exit_code == 0 ? static_cast<int>(ErrorKind::kStart) : record.exit_code;
}

asio::awaitable<void> Supervisor::finish(JobEnd end) {
  input_.reset();
  for (HostState& host : job_.hosts) {
    if (host.link) host.link->close();
  }
  ending_.only_output_waits();
  co_await ending_.drain(room_);
  // The last bytes could not be written, or somebody lost patience: then the job has not ended
  // well.
  if (end.exit_code == 0 && job_.stop) end = judge();
  end.lost_output_bytes = ledger_.lost_bytes();
  if (const std::string words = ledger_.lost_words(); !words.empty()) say(words);
  const LastLines last_lines = [this](int rank) {
    return room_.last_lines(static_cast<std::uint32_t>(rank));
  };
  // What is wrong comes last, where it is read first.
  end.found = found_;
  const JobRecord record = record_of(job_, end);
  const std::string training = job_.spec.training_summary ? training_summary(record) : "";
  const std::string summary = end_text(record, last_lines);
  say_lines(training + summary);
  if (end.verdict) say_lines(findings_text(record, summary));
  exit_code_ = record_end(record, last_lines);
  tell_phase("ended");
  co_await ending_.drain(room_);
  set_log_sink(nullptr);
  logging_ = nullptr;
  if (job_.stop) {
    room_.finish_within(kLastMessageTimeout);
  } else {
    room_.finish();
  }
}

asio::awaitable<void> Supervisor::conduct() {
  JobEnd end = co_await launch_and_watch();
  co_await spawner_->tidy_up();
  co_await finish(std::move(end));
  io_.stop();
}

void Supervisor::log_line(const std::string& line) {
  if (Supervisor* const job = logging_) asio::post(job->io_, [=] { job->room_.note(line); });
}

// On a terminal, once a check takes longer than one waits without wondering.
asio::awaitable<void> Supervisor::tell_progress() {
  asio::steady_timer timer(io_);
  std::string told;
  for (;;) {
    timer.expires_after(kProgressInterval);
    co_await timer.async_wait(asio::use_awaitable);
    const std::string words = progress_of_check(job_);
    if (!words.empty() && words != told) say(words);
    told = words;
  }
}

// Nothing of the job is left on any host when this ends.
asio::awaitable<void> Supervisor::conduct_check(CheckOutcome* outcome) {
  try {
    co_await check_job(context_, &outcome->input);
  } catch (const Interrupted&) {
  } catch (const Error& error) {
    check_error_ = error;
  }
  if (job_.stop) outcome->exit_code = judge().exit_code;
  co_await ending_.end_hosts(false);
  co_await spawner_->tidy_up();
  for (HostState& host : job_.hosts)
    if (host.link) host.link->close();
  co_await ending_.drain(room_);
  set_log_sink(nullptr);
  logging_ = nullptr;
  room_.finish_within(kLastMessageTimeout);
  io_.stop();
}

CheckOutcome Supervisor::check() {
  CheckOutcome outcome;
  if (::isatty(STDERR_FILENO) == 1) asio::co_spawn(io_, tell_progress(), asio::detached);
  drive(conduct_check(&outcome));
  if (check_error_) throw Error(*check_error_);
  return outcome;
}

int Supervisor::run() {
  if (const Status written = record_begin(); !written.ok()) {
    throw Error(ErrorKind::kUsage, written.message,
                "give --output-dir a directory that this user can write to");
  }
  drive(conduct());
  return exit_code_;
}

void Supervisor::drive(asio::awaitable<void> conduct) {
  logging_ = this;
  set_log_sink(log_line);
  signals_.start();
  const auto rethrow = [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  };
  if (job_.spec.timeout) asio::co_spawn(io_, keep_time_limit(), rethrow);
  asio::co_spawn(io_, std::move(conduct), rethrow);
  io_.run();
}

}  // namespace

namespace {

SupervisedParts real_parts(const JobSpec& spec, const HostList& list,
                           const Environment& environment) {
  const SpawnOptions options = spawn_options(spec, list, environment);
  const WayCheck check = [options](const std::vector<HostTarget>& hosts) {
    check_way(options, hosts);
  };
  return {make_spawner(options), output_options(spec, environment), check};
}

Supervisor& make_supervisor(const JobSpec& spec, const HostList& list,
                            const Environment& environment, SupervisedParts parts) {
  // Never destroyed: threads that are blocked for good in a read or write may still refer to it.
  static std::vector<Supervisor*>* const supervisors = new std::vector<Supervisor*>;
  supervisors->push_back(new Supervisor(spec, list, environment, std::move(parts)));
  return *supervisors->back();
}

}  // namespace

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment) {
  return supervise_job(spec, list, environment, real_parts(spec, list, environment));
}

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  SupervisedParts parts) {
  return make_supervisor(spec, list, environment, std::move(parts)).run();
}

CheckOutcome check_hosts(const JobSpec& spec, const HostList& list,
                         const Environment& environment) {
  return make_supervisor(spec, list, environment, real_parts(spec, list, environment)).check();
}

}  // namespace hv::launcher
