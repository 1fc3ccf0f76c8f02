// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/stack_run.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "launcher/agent/ranks/local_ranks.h"
#include "launcher/facts/read_file.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/base/core_mask.h"
#include "src/base/text.h"
#include "src/contract/contract.h"

namespace hv::launcher {
namespace {

constexpr auto kMostStackTime = std::chrono::minutes(1);
constexpr auto kPollInterval = std::chrono::milliseconds(10);
constexpr auto kPythonTime = std::chrono::seconds(2);  // until the first byte of a process
// A stack is complete when no byte has arrived for this long.
constexpr auto kPythonPause = std::chrono::milliseconds(100);
// The effect of killing a reader on its process may show only after this time.
constexpr auto kAfterKill = std::chrono::milliseconds(100);
// Time to put the answer together before hvrun's timeout.
constexpr auto kSpare = std::chrono::milliseconds(200);
constexpr std::size_t kMostReaderBytes = 8u << 20;
constexpr std::size_t kMostWithoutPython = 4;  // processes of a rank without Python

// The first lines that fit.
std::string first_lines(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  const std::size_t end = text.rfind('\n', most - 1);
  return std::string(text.substr(0, end == std::string_view::npos ? most : end + 1));
}

void add_problem(wire::RankStacks* stacks, const std::string& text) {
  if (!text.empty()) stacks->problem += (stacks->problem.empty() ? "" : "; ") + text;
}

bool holds_frames(const std::string& native) { return native.find("#0 ") != std::string::npos; }

off_t size_of(const UniqueFd& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 ? status.st_size : 0;
}

}  // namespace

StackRun::StackRun(EventLoop& loop, const Environment& own, const std::vector<Rank>& ranks,
                   const wire::StackRequest& request, Done done)
    : loop_(loop),
      own_(own),
      deadline_(now() + std::min<Duration>(bounded_seconds(request.timeout_s), kMostStackTime)),
      done_(std::move(done)) {
  reply_.number = request.number;
  const std::vector<ProcessEntry> all = read_processes();
  for (const Rank& rank : ranks) add(rank, all);
  limit_ = loop_.call_at(deadline_, [this] { answer_now(); });
  timer_ = loop_.call_after(Duration::zero(), [this] { poll_queues(); });
}

StackRun::~StackRun() {
  loop_.cancel(timer_);
  loop_.cancel(limit_);
  for (Process& process : processes_) process.reader.reset();
  continue_processes();
}

// If some processes offer Python stacks, only these are reported: their parents (timeout, a shell)
// wait for them. Only the first gets a native stack, too; its workers get only Python stacks.
void StackRun::add(const Rank& rank, const std::vector<ProcessEntry>& all) {
  std::vector<Process> own;
  for (const ProcessEntry& entry : processes_of_rank(all, rank.pid)) {
    Process process;
    process.stacks.rank = rank.rank;
    process.stacks.pid = static_cast<std::uint32_t>(entry.pid);
    process.start_time = entry.start_time;
    process.stacks.name = printable(entry.name, 40);
    process.stacks.state = describe_state(entry);
    process.was_stopped = entry.is_standing_still();
    process.offers_python = static_cast<bool>(stacks_file(entry.pid));
    own.push_back(std::move(process));
  }
  const auto offers = [](const Process& process) { return process.offers_python; };
  const bool has_python = std::any_of(own.begin(), own.end(), offers);
  if (has_python) std::erase_if(own, std::not_fn(offers));
  if (!has_python && own.size() > kMostWithoutPython) own.resize(kMostWithoutPython);
  ProcessQueue queue;
  queue.next = processes_.size();
  queue.end = queue.next + own.size();
  for (Process& process : own) {
    process.is_native_requested = !has_python || &process == own.data();
    processes_.push_back(std::move(process));
  }
  queues_.push_back(std::move(queue));
}

void StackRun::poll_queues() {
  bool is_any_asked = false;
  for (ProcessQueue& queue : queues_) is_any_asked |= advance(queue);
  if (!is_any_asked) return begin_native();
  timer_ = loop_.call_after(kPollInterval, [this] { poll_queues(); });
}

// False: no process of that rank will answer any more.
bool StackRun::advance(ProcessQueue& queue) {
  while (queue.next < queue.end) {
    if (!queue.file && !ask(queue)) {
      ++queue.next;
      continue;
    }
    const off_t size = size_of(queue.file);
    if (size != queue.size) queue.grown_at = now();
    queue.size = size;
    const bool has_spoken = size > queue.before;
    if (has_spoken ? now() - queue.grown_at < kPythonPause : now() - queue.asked_at < kPythonTime)
      return true;
    read_python(queue);
    queue.file.reset();
    ++queue.next;
  }
  return false;
}

// Nothing: it has ended; another process may have its pid.
std::optional<ProcessEntry> StackRun::find_process(const Process& process) {
  auto entry = read_process(static_cast<pid_t>(process.stacks.pid));
  return entry && entry->start_time == process.start_time ? entry : std::nullopt;
}

// False: that process is not asked. A stopped process would answer only when it goes on.
bool StackRun::ask(ProcessQueue& queue) {
  Process& process = processes_[queue.next];
  if (!process.offers_python || process.was_stopped) return false;
  const auto pid = static_cast<pid_t>(process.stacks.pid);
  queue.file = stacks_file(pid);
  if (!queue.file || !find_process(process)) {
    queue.file.reset();
    return false;
  }
  queue.before = queue.size = size_of(queue.file);
  queue.asked_at = queue.grown_at = now();
  if (::kill(pid, kStacksSignal) == 0) return true;
  queue.file.reset();
  return false;
}

void StackRun::read_python(ProcessQueue& queue) {
  Process& process = processes_[queue.next];
  if (queue.size <= queue.before)
    return add_problem(&process.stacks, "Python did not tell its stack within " +
                                            format_duration(Duration(kPythonTime)));
  std::string text(std::min<std::size_t>(static_cast<std::size_t>(queue.size - queue.before),
                                         wire::kMaxStackBytes),
                   '\0');
  const ssize_t got = ::pread(queue.file.get(), text.data(), text.size(), queue.before);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  process.stacks.python = std::move(text);
}

void StackRun::begin_native() {
  program_ = find_stack_reader(own_);
  start_readers();
}

void StackRun::start_readers() {
  const auto most = static_cast<std::size_t>(std::max(count_cores(own_cores()), 1));
  std::size_t running = 0, left = 0;
  for (const Process& process : processes_) running += process.reader && !process.has_answered;
  for (std::size_t i = 0; i < processes_.size(); ++i) {
    Process& process = processes_[i];
    if (!process.is_native_requested || process.has_answered || process.reader) continue;
    if (program_.name.empty()) {
      report_without_reader(process);
    } else if (now() >= deadline_ - kSpare) {  // killing a reader while it attaches does harm
      process.has_answered = true;
      add_problem(&process.stacks, "there was no time for " + program_.name);
    } else if (running < most) {
      read_native(i);
      ++running;
    } else {
      ++left;
    }
  }
  if (running + left == 0) finish();
}

void StackRun::read_native(std::size_t index) {
  Environment environment = own_;
  environment.set("DEBUGINFOD_URLS", "");  // readers must not wait for the network
  environment.set("LC_ALL", "C");
  ChildQuestion question;
  question.name = program_.name;
  question.command.argv = program_.arguments_for(static_cast<pid_t>(processes_[index].stacks.pid));
  question.command.program = program_.path;
  question.command.environment = environment.entries();
  question.time = std::max<Duration>(deadline_ - now() - kSpare, std::chrono::milliseconds(1));
  question.most_bytes = kMostReaderBytes;
  processes_[index].reader = std::make_unique<ChildAnswer>(
      loop_, question, [this, index](const std::string& problem, const std::string& answer) {
        answered(index, problem, answer);
      });
}

// Both readers print complaints that do not matter once there are frames.
void StackRun::answered(std::size_t index, const std::string& problem, const std::string& answer) {
  Process& process = processes_[index];
  process.has_answered = true;
  has_killed_ = has_killed_ || !problem.empty();
  if (holds_frames(answer)) {
    process.stacks.native = first_lines(answer, wire::kMaxStackBytes);
  } else if (process.stacks.python.empty()) {
    const bool is_denied = is_forbidden(problem);
    add_problem(&process.stacks,
                is_denied
                    ? explain_denial(read_file("/proc/sys/kernel/yama/ptrace_scope").value_or(""))
                    : (problem.empty() ? program_.name + " told no frames" : problem));
    add_problem(&process.stacks, describe_kernel_wait(static_cast<pid_t>(process.stacks.pid)));
  }
  // Not from this call, which a reader makes.
  loop_.cancel(timer_);
  timer_ = loop_.call_after(Duration::zero(), [this] { start_readers(); });
}

void StackRun::report_without_reader(Process& process) {
  process.has_answered = true;
  if (!process.stacks.python.empty()) return;
  add_problem(&process.stacks, describe_kernel_wait(static_cast<pid_t>(process.stacks.pid)));
  add_problem(&process.stacks,
              "its stack is told where eu-stack (elfutils) or gdb is installed on that host");
}

// A reader that is killed can leave a process stopped that ran before.
void StackRun::continue_processes() {
  if (!has_killed_) return;
  for (const Process& process : processes_) {
    if (!process.is_native_requested || process.was_stopped) continue;
    const auto entry = find_process(process);
    // SIGCONT also cancels a stop that is pending.
    if (entry && (entry->is_stopped() || process.is_reader_killed)) ::kill(entry->pid, SIGCONT);
  }
}

void StackRun::finish() {
  loop_.cancel(timer_);
  timer_ = loop_.call_after(has_killed_ ? Duration(kAfterKill) : Duration::zero(),
                            [this] { answer_now(); });
}

bool StackRun::child_ended(pid_t pid, const ExitStatus& status) {
  return std::any_of(processes_.begin(), processes_.end(), [&](const Process& process) {
    return process.reader && process.reader->child_ended(pid, status);
  });
}

void StackRun::answer_now() {
  for (Process& process : processes_) {
    if (process.reader && !process.has_answered) {
      has_killed_ = true;
      process.is_reader_killed = true;
      add_problem(&process.stacks, program_.name + " had no time to tell its stack");
    }
    process.reader.reset();
  }
  continue_processes();
  std::size_t bytes = 0;
  for (Process& process : processes_) {
    bytes += process.stacks.python.size() + process.stacks.native.size();
    if (bytes > wire::kMaxStacksBytes) {
      process.stacks.python.clear();
      process.stacks.native.clear();
      add_problem(&process.stacks, "there are too many stacks to be told");
    }
    reply_.stacks.push_back(std::move(process.stacks));
  }
  processes_.clear();
  queues_.clear();
  loop_.cancel(timer_);
  loop_.cancel(limit_);
  const Done done = std::move(done_);
  const wire::StackReply reply = std::move(reply_);
  done(reply);
}

Handled StackService::handle(const Frame& frame) {
  return handle_as<wire::StackRequest>(
      frame, [this](const wire::StackRequest& request) { begin(request); });
}

void StackService::begin(const wire::StackRequest& request) {
  if (run_) run_->answer_now();
  std::vector<StackRun::Rank> ranks;
  for (const auto& rank : agent_.ranks.all()) {
    const bool is_requested =
        request.ranks.empty() ||
        std::find(request.ranks.begin(), request.ranks.end(), rank->rank) != request.ranks.end();
    if (rank->is_running() && is_requested) ranks.push_back({rank->rank, rank->pid});
  }
  run_ = std::make_unique<StackRun>(agent_.loop, agent_.environment, ranks, request,
                                    [this](const wire::StackReply& reply) {
                                      agent_.link.send(reply);
                                      run_.reset();
                                    });
}

}  // namespace hv::launcher
