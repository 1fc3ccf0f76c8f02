// One thread reads mpirun's streams, hvrun's signals and the keeper; those of OutputRoom write.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/mpi/mpi_job.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <map>
#include <mutex>

#include "launcher/mpi/mpi_advice.h"
#include "launcher/mpi/mpi_keeper.h"
#include "launcher/mpi/mpi_output.h"
#include "launcher/mpi/unstarted_ranks.h"
#include "launcher/output/line_gate.h"
#include "launcher/output/output_ledger.h"
#include "launcher/output/output_options.h"
#include "launcher/output/output_room.h"
#include "src/base/error.h"
#include "src/base/text.h"
#include "src/process/signals.h"
#include "src/wire/authentication.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostOnTheWay = 4 << 20;  // read, and not yet written
constexpr std::size_t kMostWordsKept = 16 << 10;
// For other ranks that have no program either.
constexpr auto kTimeToTell = std::chrono::milliseconds(500);
constexpr auto kFarewell = std::chrono::milliseconds(500);
// After mpirun has ended somebody elsewhere may still hold its streams.
constexpr auto kTimeForLastOutput = std::chrono::seconds(1);

struct Pipe {
  UniqueFd read_end, write_end;
  Pipe() {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
      throw Error(ErrorKind::kStart, "make a pipe: " + errno_text(errno));
    read_end.reset(ends[0]);
    write_end.reset(ends[1]);
  }
};

// Before there are threads, which inherit the mask.
UniqueFd watch_signals() {
  sigset_t watched;
  sigemptyset(&watched);
  for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGUSR1, SIGUSR2})
    if (!is_ignored(number)) sigaddset(&watched, number);
  ::pthread_sigmask(SIG_BLOCK, &watched, nullptr);
  return UniqueFd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
}

class MpiJob {
 public:
  MpiJob(const MpiLaunch& launch, const JobSpec& spec, const Environment& environment)
      : launch_(launch),
        spec_(spec),
        signals_(watch_signals()),
        wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
        keeper_(command(), streams(), spec.grace),
        room_(
            output_options(spec, environment),
            [this](std::uint32_t rank, std::size_t bytes) { has_written(rank, bytes); },
            [this](const std::string& what, int error, int stream) {
              output_broke(what, error, stream);
            }),
        begun_(now()) {
    for (int i = 0; i < 2; ++i) {
      pipes_[i].write_end.reset();
      outputs_[i] = make_mpi_output(launch.mpirun, i + 1, launch.tag);
    }
  }

  int run();

 private:
  Command command() const {
    Command command;
    command.argv = launch_.command.argv;
    Environment environment = launch_.environment.own;
    for (const std::string& variable : launch_.command.variables) {
      const std::size_t equals = variable.find('=');
      environment.set(variable.substr(0, equals), variable.substr(equals + 1));
    }
    command.environment = environment.entries();
    return command;
  }
  ChildOptions streams() const {
    ChildOptions options;
    if (spec_.forward_stdin) options.stdin_fd = 0;
    options.stdout_fd = pipes_[0].write_end.get();
    options.stderr_fd = pipes_[1].write_end.get();
    options.new_session = !spec_.forward_stdin;
    return options;
  }

  // From the writer threads.
  void has_written(std::uint32_t rank, std::size_t bytes) {
    {
      const std::lock_guard lock(ledger_mutex_);
      (void)ledger_.written(rank, bytes);
    }
    on_the_way_ -= bytes;
    wake();
  }
  void output_broke(const std::string& what, int error, int stream);
  void wake() const {
    const std::uint64_t one = 1;
    (void)!::write(wake_.get(), &one, sizeof one);
  }

  void say(const std::string& text) { room_.note("hvrun: " + text); }
  bool is_open() const { return pipes_[0].read_end || pipes_[1].read_end; }
  bool is_done() const { return end_ && !is_open() && on_the_way_ == 0; }
  bool has_room() const { return on_the_way_ < kMostOnTheWay; }
  bool reads_streams() const { return has_room() || wanted_code_; }
  void step(TimePoint limit = TimePoint::max());
  void read_stream(std::size_t index);
  void take(const MpiPiece& piece);
  void show(int of_rank, int stream, std::string_view text);
  void take_own_words(std::string_view bytes);
  void end_vain_wait();
  void close_stream(std::size_t index);
  void take_signals();
  void take_signal(int number, bool is_of_terminal);
  void look_at_limits(bool is_quiet);
  void take_broken();
  void request_end(int exit_code, int signal);
  void say_unstarted();
  int judge();
  void say_farewell();

  const MpiLaunch& launch_;
  const JobSpec& spec_;
  std::array<Pipe, 2> pipes_;
  UniqueFd signals_, wake_;
  MpiKeeper keeper_;
  std::array<std::unique_ptr<MpiOutput>, 2> outputs_;
  std::atomic<std::size_t> on_the_way_{0};
  std::mutex ledger_mutex_;  // guards the next one
  OutputLedger ledger_;
  std::mutex broken_mutex_;    // guards the next two
  std::optional<int> broken_;  // the exit code for it
  std::string broken_words_;
  OutputRoom room_;
  const TimePoint begun_;
  std::map<std::pair<int, int>, LineGate> gates_;  // by rank and stream, of those that were seen
  std::string line_, words_;                       // of mpirun's own: begun; the last ones
  UnstartedRanks unstarted_{launch_.mpirun};
  std::optional<TimePoint> told_at_;  // that a rank has no program; then others have time to
  std::optional<int> wanted_code_;    // why the job was to end before its time
  std::optional<ExitStatus> end_;
  std::optional<TimePoint> last_output_at_;
};

// One pass of the loop: waits for something to happen, until then at most.
void MpiJob::step(TimePoint limit) {
  const bool reads = reads_streams();
  std::array<pollfd, 5> ready{{{reads ? pipes_[0].read_end.get() : -1, POLLIN, 0},
                               {reads ? pipes_[1].read_end.get() : -1, POLLIN, 0},
                               {end_ ? -1 : keeper_.fd(), POLLIN, 0},
                               {signals_.get(), POLLIN, 0},
                               {wake_.get(), POLLIN, 0}}};
  if (last_output_at_ && reads) limit = std::min(limit, *last_output_at_);
  if (spec_.timeout && !wanted_code_ && !end_) limit = std::min(limit, begun_ + *spec_.timeout);
  if (told_at_ && !wanted_code_ && !end_) limit = std::min(limit, *told_at_ + kTimeToTell);
  const timespec left = time_left(limit);
  const int count = ::ppoll(ready.data(), ready.size(), &left, nullptr);
  if (count < 0) return;
  std::uint64_t ignored = 0;
  if (ready[4].revents) (void)!::read(wake_.get(), &ignored, sizeof ignored);
  for (std::size_t i = 0; i < 2; ++i)
    if (ready[i].revents) read_stream(i);
  if (ready[2].revents) {
    end_ = keeper_.take_end();
    last_output_at_ = now() + kTimeForLastOutput;
  }
  take_signals();
  take_broken();
  look_at_limits(count == 0);
}

void MpiJob::read_stream(std::size_t index) {
  std::array<char, 64 << 10> buffer;
  const ssize_t got = ::read(pipes_[index].read_end.get(), buffer.data(), buffer.size());
  if (got < 0 && errno == EINTR) return;
  if (got <= 0) return close_stream(index);
  outputs_[index]->feed({buffer.data(), static_cast<std::size_t>(got)},
                        [this](const MpiPiece& piece) { take(piece); });
  if (last_output_at_) last_output_at_ = now() + kTimeForLastOutput;
}

void MpiJob::take(const MpiPiece& piece) {
  if (piece.rank == kMpirunItself) return take_own_words(piece.bytes);
  if (piece.stream != STDERR_FILENO) return show(piece.rank, piece.stream, piece.bytes);
  show(piece.rank, piece.stream, unstarted_.pass(piece.rank, piece.bytes));
  if (unstarted_.is_told() && goes_on_without(launch_.mpirun) && !told_at_) told_at_ = now();
}

void MpiJob::show(int of_rank, int stream, std::string_view text) {
  if (text.empty()) return;
  const auto rank = static_cast<std::uint32_t>(of_rank);
  // Once the job is to end, no reader holds back mpirun, which could not end its hosts then.
  LineGate& gate = gates_[{of_rank, stream}];
  std::string bytes = gate.pass(text, !wanted_code_ || has_room());
  {
    const std::lock_guard lock(ledger_mutex_);
    ledger_.arrived(rank, text.size());
  }
  if (bytes.empty()) return;
  on_the_way_ += bytes.size();
  room_.add({rank, stream, wall_clock_ns(), std::move(bytes), false});
}

void MpiJob::take_own_words(std::string_view bytes) {
  line_.append(bytes);
  words_.append(bytes);
  if (words_.size() > kMostWordsKept) words_.erase(0, words_.size() - kMostWordsKept);
  const std::size_t end = line_.rfind('\n');
  if (end == std::string::npos && line_.size() < kMostWordsKept) return;
  room_.note(line_.substr(0, end == std::string::npos ? end : end + 1));
  line_.erase(0, end == std::string::npos ? end : end + 1);
  end_vain_wait();
}

void MpiJob::end_vain_wait() {
  if (wanted_code_ || end_ || !waits_in_vain(launch_.mpirun, words_)) return;
  request_end(static_cast<int>(ErrorKind::kStart), SIGTERM);
  say("error: " + launch_.mpirun.program +
      " cannot reach a host, for which it would wait for ever\n  try: " +
      mpirun_advice(launch_.mpirun, words_));
}

void MpiJob::close_stream(std::size_t index) {
  if (!pipes_[index].read_end) return;
  pipes_[index].read_end.reset();
  outputs_[index]->end([this](const MpiPiece& piece) { take(piece); });
  if (is_open()) return;
  for (const auto& [rank, text] : unstarted_.take_rest()) show(rank, STDERR_FILENO, text);
  if (!line_.empty()) room_.note(line_);
  line_.clear();
  for (const auto& [stream, gate] : gates_)
    room_.add({static_cast<std::uint32_t>(stream.first), stream.second, wall_clock_ns(), "", true});
}

void MpiJob::take_signals() {
  signalfd_siginfo info{};
  while (::read(signals_.get(), &info, sizeof info) == static_cast<ssize_t>(sizeof info))
    take_signal(static_cast<int>(info.ssi_signo), info.ssi_code == SI_KERNEL);
}

void MpiJob::take_signal(int number, bool is_of_terminal) {
  if (number == SIGTSTP) {
    keeper_.pause();
    stop_for_terminal();
    keeper_.go_on();
  } else if (number == SIGUSR1 || number == SIGUSR2) {
    keeper_.pass_on(number);
  } else if (wanted_code_) {
    keeper_.kill();
    if (end_) last_output_at_ = now();
  } else {
    // The terminal's goes to mpirun by itself where it is in the same session.
    const bool is_known = is_of_terminal && spec_.forward_stdin;
    if (is_known) keeper_.expect_end();
    // MPICH's would hand SIGINT on, and ranks are told to end by SIGTERM.
    request_end(128 + number, is_known ? 0 : SIGTERM);
    say("ended by " + signal_text(number) +
        (number == SIGQUIT ? "; with --mpi nobody tells where ranks stand" : ""));
  }
}

void MpiJob::request_end(int exit_code, int signal) {
  wanted_code_ = exit_code;
  if (signal != 0) keeper_.pass_on(signal);
  if (end_) last_output_at_ = now();
}

// is_quiet: nothing came until the limit. Only then is the last output over: a reader may have held
// it up for longer than that, or Ctrl-Z all of us, and it is still in the pipe.
void MpiJob::look_at_limits(bool is_quiet) {
  if (spec_.timeout && !wanted_code_ && !end_ && now() >= begun_ + *spec_.timeout) {
    request_end(static_cast<int>(ErrorKind::kTimeout), SIGTERM);
    say("error: the job ran longer than --timeout " + seconds_text(*spec_.timeout) +
        "\n  try: a longer --timeout, or see what it waits for (HVRUN_STALL_SECONDS)");
  }
  // The other ranks would wait for those for ever.
  if (told_at_ && !wanted_code_ && !end_ && now() >= *told_at_ + kTimeToTell) {
    request_end(static_cast<int>(ErrorKind::kStart), SIGTERM);
    say_unstarted();
  }
  if (last_output_at_ && (is_quiet || wanted_code_) && now() >= *last_output_at_) {
    last_output_at_.reset();
    for (std::size_t i = 0; i < 2; ++i) close_stream(i);
  }
}

void MpiJob::output_broke(const std::string& what, int error, int stream) {
  const std::lock_guard lock(broken_mutex_);
  const bool reader_left = error == EPIPE && stream != 0;
  broken_ = reader_left ? 128 + SIGPIPE : static_cast<int>(ErrorKind::kStart);
  if (!reader_left)
    broken_words_ = "error: " + what + ": " + errno_text(error) +
                    "; the job was ended so that no output is lost unseen\n  try: make room there, "
                    "or send the output elsewhere";
  wake();
}

void MpiJob::take_broken() {
  const std::lock_guard lock(broken_mutex_);
  if (!broken_) return;
  if (!wanted_code_) {
    request_end(*broken_, SIGTERM);
    if (!broken_words_.empty()) say(broken_words_);
  }
  broken_.reset();
}

void MpiJob::say_unstarted() {
  for (const std::string& text : unstarted_.texts()) say("error: " + text);
}

int MpiJob::judge() {
  if (wanted_code_) return *wanted_code_;
  const int code = exit_code_of_mpirun(launch_.mpirun, end_->shell_code(), words_);
  if (code == 0) return 0;
  if (unstarted_.is_told()) {
    say_unstarted();
    return static_cast<int>(ErrorKind::kStart);
  }
  const std::string words = words_ + unstarted_.daemons_words();
  std::string advice = advice_on_mpi_args(launch_.mpirun, spec_.mpi_args, words);
  if (advice.empty()) advice = mpirun_advice(launch_.mpirun, words);
  const bool is_unstarted = has_started_nobody(launch_.mpirun, words_);
  const bool is_of_signal = !is_unstarted && code > 128 && code < 128 + 65;
  say("error: " + launch_.mpirun.program +
      (is_of_signal && !end_->by_signal
           ? " says that a rank was ended by " + signal_text(code - 128)
           : " ended with " + end_->text()) +
      (advice.empty() ? "" : "\n  try: " + advice));
  return is_unstarted ? static_cast<int>(ErrorKind::kStart) : code;
}

// Of a job that was to end: what its readers do not take by then is lost, and told.
void MpiJob::say_farewell() {
  const TimePoint limit = now() + kFarewell;
  while (on_the_way_ > 0 && now() < limit) step(limit);
  std::string words;
  {
    const std::lock_guard lock(ledger_mutex_);
    words = ledger_.lost_words();
  }
  if (!words.empty()) say(words);
  room_.finish_within(kFarewell);
}

int MpiJob::run() {
  while (!is_done() && !(end_ && !is_open() && wanted_code_)) step();
  const int code = judge();
  if (wanted_code_)
    say_farewell();
  else
    room_.finish();
  return code;
}

}  // namespace

MpiLaunch plan_mpi_launch(const JobSpec& spec, const HostList& list, const LaunchPlan& plan,
                          const Environment& environment, const std::string& agent_file) {
  constexpr std::size_t kTagBytes = 8;
  MpiLaunch launch;
  launch.environment =
      mpi_environment(spec, environment, choose_master(spec, list, plan, environment));
  launch.mpirun = find_mpirun(launch.environment.own);
  launch.mpirun.agent = agent_file;
  launch.tag = random_hex(kTagBytes);
  launch.command =
      make_mpi_command(launch.mpirun, spec, list, plan, launch.environment.for_others, launch.tag);
  return launch;
}

int run_mpi_job(const MpiLaunch& launch, const JobSpec& spec, const Environment& environment) {
  if (!spec.output_directory.empty()) make_output_directory(spec.output_directory);
  // Never destroyed: threads that are blocked for good in a write may still refer to it.
  auto* const job = new MpiJob(launch, spec, environment);
  return job->run();
}

}  // namespace hv::launcher
