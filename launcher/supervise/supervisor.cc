// SPDX-License-Identifier: Apache-2.0
#include "launcher/supervise/supervisor.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/post.hpp>
#include <cstdio>

#include "launcher/output/output_room.h"
#include "launcher/supervise/agent_file.h"
#include "launcher/supervise/event_router.h"
#include "launcher/supervise/exit_summary.h"
#include "launcher/supervise/job.h"
#include "launcher/supervise/launch_sequence.h"
#include "launcher/supervise/signal_watch.h"
#include "launcher/supervise/stdin_forwarder.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// Between two questions to the agents while the cause of a failure is looked for.
constexpr auto kQueryInterval = std::chrono::milliseconds(50);
constexpr auto kMostGraceAfterLoss = std::chrono::seconds(2);
// How long the output of ranks that have ended waits for a reader once somebody wants to leave.
constexpr auto kReaderPatience = std::chrono::milliseconds(500);
// More than a rank's streams can hold: what they still have comes, and is dropped here.
constexpr std::uint32_t kDiscardCredit = 1u << 30;
// What ending takes beyond the grace: the agents' last scan, and the way back.
constexpr auto kEndMargin = std::chrono::milliseconds(1500);
// A host that was lost with its network cannot be swept: its agent ends everything by itself.
constexpr auto kSweepTime = std::chrono::seconds(3);
// Credits are returned in lumps of at least this, so that a line does not cost a message.
constexpr std::uint32_t kCreditLump = 64 << 10;

SpawnOptions spawn_options(const JobSpec& spec, const HostList& list,
                           const Environment& environment) {
  SpawnOptions options;
  options.environment = environment;
  options.agent_program = find_agent_file();
  if (!list.this_machine) options.build_id = agent_digest(options.agent_program);
  options.start_timeout = spec.start_timeout;
  options.accept_new_host_keys = spec.ssh_accept_new;
  options.remote_shell = spec.remote_shell;
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

class Supervisor {
 public:
  Supervisor(const JobSpec& spec, const HostList& list, const Environment& environment,
             SupervisedParts parts)
      : environment_(environment),
        job_(io_.get_executor(), spec),
        spawner_(std::move(parts.spawner)),
        room_(std::move(parts.output), written_callback(), broken_callback()),
        router_(job_, {[this](const wire::Output& output) { take_output(output); },
                       [this](std::uint32_t bytes) {
                         if (input_) input_->accepted(bytes);
                       },
                       [this](const std::string& text) { say(text); }}),
        signals_(job_),
        context_{job_,
                 list,
                 *spawner_,
                 router_,
                 environment_,
                 [this](const std::string& phase) { tell_phase(phase); },
                 [this](const std::string& text) { say(text); }} {}

  int run();

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
  void output_broke(const std::string& what, int error, int stream);
  void say(const std::string& text) { room_.note("hvrun: " + text); }
  void tell_phase(const std::string& phase);
  void start_stdin();

  asio::awaitable<void> conduct();
  asio::awaitable<JobEnd> launch_and_watch();
  asio::awaitable<void> watch_ranks();
  asio::awaitable<void> ask_who_is_exiting();
  asio::awaitable<void> end_hosts(bool in_order);
  asio::awaitable<void> sweep(std::size_t host);
  void sweep_lost_hosts();
  void discard_output();
  Duration grace_of_end() const;
  JobEnd judge();
  asio::awaitable<void> drain_output();
  asio::awaitable<void> finish(JobEnd end);
  bool ranks_ended() const;
  void write_summary(const std::string& text);

  const Environment& environment_;
  asio::io_context io_{1};
  Job job_;
  std::unique_ptr<Spawner> spawner_;
  OutputRoom room_;
  EventRouter router_;
  SignalWatch signals_;
  LaunchContext context_;
  std::unique_ptr<StdinForwarder> input_;
  std::vector<std::uint32_t> owed_credit_;
  std::vector<bool> swept_;
  int sweeps_under_way_ = 0;
  TimePoint sweep_deadline_;  // of the last one begun
  bool launched_ = false;
  bool discards_output_ = false;
  std::uint32_t query_number_ = 0;
  int exit_code_ = 0;
};

void Supervisor::take_output(const wire::Output& output) {
  if (discards_output_) return;
  room_.add({output.rank, output.stream, output.wall_clock_ns, output.bytes, output.end});
}

void Supervisor::return_credit(std::uint32_t rank, std::size_t bytes) {
  if (rank >= job_.ranks.size()) return;
  owed_credit_.resize(job_.ranks.size());
  std::uint32_t& owed = owed_credit_[rank];
  owed += static_cast<std::uint32_t>(bytes);
  HostState& host = job_.hosts[static_cast<std::size_t>(job_.plan.ranks[rank].host)];
  if (owed < kCreditLump / 2 || !host.is_there()) return;
  host.link->send(wire::Credit{rank, std::exchange(owed, 0)});
}

void Supervisor::output_broke(const std::string& what, int error, int stream) {
  if (job_.stop) return;
  const bool reader_left = error == EPIPE && stream != 0;
  job_.stop =
      StopRequest{reader_left ? StopRequest::Kind::kOutputClosed : StopRequest::Kind::kOutputFailed,
                  SIGPIPE, what + ": " + errno_text(error)};
  job_.change.notify();
}

void Supervisor::tell_phase(const std::string& phase) {
  if (!job_.spec.verbose) return;
  char text[64];
  std::snprintf(text, sizeof text, "%7.3f s  ", seconds_since(job_.begun));
  say(text + phase);
}

void Supervisor::start_stdin() {
  if (!job_.spec.forward_stdin) return;
  input_ = std::make_unique<StdinForwarder>(wire::kStdinWindow, [this](std::string bytes) {
    asio::post(io_, [this, piece = std::move(bytes)]() mutable {
      HostState& host = job_.hosts.at(0);
      const bool end = piece.empty();
      if (host.is_there()) host.link->send(wire::Stdin{0, end, std::move(piece)});
    });
  });
}

bool Supervisor::ranks_ended() const {
  return std::all_of(job_.ranks.begin(), job_.ranks.end(),
                     [](const RankState& rank) { return rank.ended; });
}

// One round: every agent says which of its ranks are on their way out.
asio::awaitable<void> Supervisor::ask_who_is_exiting() {
  const TimePoint sent = now();
  const std::uint32_t number = ++query_number_;
  job_.send_to_all(wire::Query{number});
  const auto answered = [this, number] {
    return job_.all_hosts([number](const HostState& host) {
      return !host.is_there() || host.query_answered >= number;
    });
  };
  if (!co_await job_.until(answered, sent + FailurePolicy::kMostCollection)) co_return;
  std::set<int> exiting;
  for (const HostState& host : job_.hosts) {
    if (host.is_there()) exiting.insert(host.exiting.begin(), host.exiting.end());
  }
  job_.policy->exiting_ranks(exiting, sent);
}

// Until all ranks have ended well, or the cause of a failure is known, or somebody wants the job to stop.
asio::awaitable<void> Supervisor::watch_ranks() {
  const TimePoint limit = job_.spec.timeout ? job_.begun + *job_.spec.timeout : TimePoint::max();
  while (!job_.stop) {
    sweep_lost_hosts();
    if (now() >= limit) job_.stop = StopRequest{StopRequest::Kind::kTimeout, 0, {}};
    if (job_.stop || (ranks_ended() && !job_.policy->failed()) || job_.policy->decided(now()))
      co_return;
    if (job_.policy->failed()) {
      co_await ask_who_is_exiting();
      if (job_.policy->decided(now())) co_return;
      co_await job_.change.wait(now() + kQueryInterval);
    } else {
      co_await job_.change.wait(limit);
    }
  }
}

// A fresh agent ends what an agent that went without goodbye may have left.
asio::awaitable<void> Supervisor::sweep(std::size_t index) {
  ++sweeps_under_way_;
  sweep_deadline_ = now() + kSweepTime;
  HostTarget target = job_.hosts[index].target;
  try {
    auto channel = co_await spawner_->start(target);
    HostState& host = job_.hosts[index];
    host.empty = false;
    host.link = std::make_shared<HostLink>(job_.executor, static_cast<int>(index),
                                           std::move(channel), job_.spec.lost_after, router_);
    host.link->start();
    wire::Setup setup;
    setup.job_id = job_.id;
    setup.key = job_.key;
    setup.host_index = static_cast<std::uint32_t>(index);
    setup.sweep = true;
    host.link->send(setup);
    co_await job_.until([&host] { return host.empty || host.link->ended(); }, now() + kSweepTime,
                        false);
  } catch (const Error& error) {
    say("warning: what job " + job_.id + " may have left on host " + target.name +
        " could not be swept: " + error.what());
  }
  --sweeps_under_way_;
  job_.change.notify();
}

void Supervisor::sweep_lost_hosts() {
  if (!launched_) return;
  swept_.resize(job_.hosts.size());
  for (std::size_t i = 0; i < job_.hosts.size(); ++i) {
    if (!job_.hosts[i].lost || swept_[i]) continue;
    swept_[i] = true;
    asio::co_spawn(io_, sweep(i), asio::detached);
  }
}

// With a host lost nothing may run 5 s later, anywhere, whatever --grace says (DESIGN §6, promise 1).
Duration Supervisor::grace_of_end() const {
  const bool is_whole = job_.all_hosts([](const HostState& host) { return !host.lost; });
  return is_whole ? job_.spec.grace : std::min<Duration>(job_.spec.grace, kMostGraceAfterLoss);
}

// Ends what runs, everywhere, and waits until every host is empty and all output is here.
asio::awaitable<void> Supervisor::end_hosts(bool in_order) {
  const auto settled = [this] {
    return (sweeps_under_way_ == 0 || now() >= sweep_deadline_) &&
           job_.all_hosts([](const HostState& host) { return !host.is_there() || host.empty; }) &&
           std::all_of(job_.ranks.begin(), job_.ranks.end(),
                       [](const RankState& rank) { return rank.open_streams <= 0; });
  };
  const Duration grace = grace_of_end();
  job_.ending = true;
  job_.send_to_all(wire::End{std::chrono::duration<double>(grace).count()});
  sweep_lost_hosts();
  // Output may wait for a slow reader as long as it likes, unless somebody wants to leave.
  if (in_order && !job_.stop) {
    while (!settled() && !job_.stop) {
      co_await job_.change.wait(sweeps_under_way_ > 0 ? sweep_deadline_ : TimePoint::max());
      sweep_lost_hosts();
    }
    if (settled()) co_return;
  }
  const TimePoint deadline = now() + grace + kEndMargin;
  co_await job_.until([&] { return settled() || ranks_ended() || job_.stop_at_once; }, deadline,
                      false);
  if (ranks_ended() &&
      !co_await job_.until(settled, std::min(deadline, now() + kReaderPatience), false))
    discard_output();
  co_await job_.until([&] { return settled() || job_.stop_at_once; }, deadline, false);
  if (!settled() && job_.stop_at_once) {
    job_.send_to_all(wire::End{0});
    co_await job_.until(settled, now() + kEndMargin, false);
  }
}

// Nobody reads it any more, and it would hold the agents back.
void Supervisor::discard_output() {
  discards_output_ = true;
  for (std::size_t rank = 0; rank < job_.ranks.size(); ++rank) {
    HostState& host = job_.hosts[static_cast<std::size_t>(job_.plan.ranks[rank].host)];
    if (host.is_there())
      host.link->send(wire::Credit{static_cast<std::uint32_t>(rank), kDiscardCredit});
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
        end.error = "the job ran longer than --timeout";
        say("error: " + end.error);
        break;
      case StopRequest::Kind::kOutputClosed:
        end.state = "output_closed";
        end.exit_code = 128 + SIGPIPE;
        break;
      case StopRequest::Kind::kOutputFailed:
        end.state = "output_failed";
        end.exit_code = static_cast<int>(ErrorKind::kStart);
        end.error = job_.stop->what;
        say("error: " + end.error + "; the job was ended so that no output is lost unseen");
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

asio::awaitable<JobEnd> Supervisor::launch_and_watch() {
  std::optional<Error> failure;
  try {
    co_await launch_job(context_);
  } catch (const Interrupted&) {
  } catch (const Error& error) {
    failure = error;
  }
  if (failure) {
    launched_ = false;
    co_await end_hosts(false);
    JobEnd end;
    end.state = "not_started";
    end.exit_code = static_cast<int>(failure->kind());
    end.error = failure->what();
    say("error: " + end.error + (failure->hint().empty() ? "" : "\n  try: " + failure->hint()));
    co_return end;
  }
  if (!job_.stop) {
    launched_ = true;
    start_stdin();
    co_await watch_ranks();
  }
  // Judged before the ranks that still run are ended by us.
  JobEnd end = judge();
  co_await end_hosts(true);
  co_return end;
}

void Supervisor::write_summary(const std::string& text) {
  const std::string& path = job_.spec.summary_file;
  const UniqueFd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!fd || ::write(fd.get(), text.data(), text.size()) != static_cast<ssize_t>(text.size())) {
    say("warning: write --summary " + path + ": " + errno_text(errno));
  }
}

// Until everything has been written, however long a reader takes, unless somebody wants to leave.
asio::awaitable<void> Supervisor::drain_output() {
  if (job_.stop) co_return;
  const auto drained = std::make_shared<bool>(false);
  room_.flush_then([this, drained] {
    asio::post(io_, [this, drained] {
      *drained = true;
      job_.change.notify();
    });
  });
  co_await job_.until([drained] { return *drained; }, TimePoint::max());
}

asio::awaitable<void> Supervisor::finish(JobEnd end) {
  input_.reset();
  for (HostState& host : job_.hosts) {
    if (host.link) host.link->close();
  }
  co_await drain_output();
  const LastLines last_lines = [this](int rank) {
    return room_.last_lines(static_cast<std::uint32_t>(rank));
  };
  for (const std::string& line : split(summary_text(job_, end, last_lines), '\n')) {
    if (!line.empty()) room_.note(line);
  }
  if (!job_.spec.summary_file.empty()) write_summary(summary_json(job_, end, last_lines));
  tell_phase("ended");
  co_await drain_output();
  if (job_.stop) {
    room_.finish_within(std::chrono::milliseconds(500));
  } else {
    room_.finish();
  }
  exit_code_ = end.exit_code;
}

asio::awaitable<void> Supervisor::conduct() {
  JobEnd end = co_await launch_and_watch();
  co_await finish(std::move(end));
  io_.stop();
}

int Supervisor::run() {
  signals_.start();
  asio::co_spawn(io_, conduct(), [](std::exception_ptr error) {
    if (error) std::rethrow_exception(error);
  });
  io_.run();
  return exit_code_;
}

}  // namespace

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment) {
  return supervise_job(
      spec, list, environment,
      {make_spawner(spawn_options(spec, list, environment)), output_options(spec, environment)});
}

int supervise_job(const JobSpec& spec, const HostList& list, const Environment& environment,
                  SupervisedParts parts) {
  // Never destroyed: threads that are blocked for good in a read or write may still refer to it.
  static std::vector<Supervisor*>* const supervisors = new std::vector<Supervisor*>;
  supervisors->push_back(new Supervisor(spec, list, environment, std::move(parts)));
  return supervisors->back()->run();
}

}  // namespace hv::launcher
