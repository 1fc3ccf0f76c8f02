// StackRun: reads the stacks of ranks; StackService: answers hvrun with them (src/wire/stacks.h).
// SPDX-License-Identifier: Apache-2.0
//
// First Python stacks: each process that offers them gets a signal and writes them into its memory
// file; one process of a rank after the other, because forked processes share that file. Then
// native stacks, by eu-stack or gdb as children, as many at once as there are cores. Every outcome
// is an answer: a process without an answer is reported as a problem. No process is changed: one
// that was stopped stays stopped, and one that ran goes on.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "launcher/agent/agent_service.h"
#include "launcher/agent/event_loop.h"
#include "launcher/agent/queries/child_answer.h"
#include "launcher/agent/queries/stack_sources.h"
#include "src/base/environment.h"
#include "src/base/unique_fd.h"
#include "src/wire/stacks.h"

namespace hv::launcher {

class StackRun {
 public:
  struct Rank {
    std::uint32_t rank = 0;
    pid_t pid = -1;
  };
  using Done = std::function<void(const wire::StackReply&)>;
  // own: the agent's environment. done is called once, from the loop or by answer_now(), and may
  // destroy this.
  StackRun(EventLoop& loop, const Environment& own, const std::vector<Rank>& ranks,
           const wire::StackRequest& request, Done done);
  ~StackRun();
  StackRun(const StackRun&) = delete;
  StackRun& operator=(const StackRun&) = delete;

  // A child of this process has been reaped. True: it was this run's.
  bool child_ended(pid_t pid, const ExitStatus& status);
  // Answers now, with the stacks that were read so far.
  void answer_now();

 private:
  struct Process {
    wire::RankStacks stacks;
    std::uint64_t start_time = 0;  // identifies the process together with its pid
    bool was_stopped = false;
    bool offers_python = false;
    bool is_native_requested = false;
    std::unique_ptr<ChildAnswer> reader{};
    bool has_answered = false;  // the reader
    bool is_reader_killed = false;
  };
  // The processes of one rank, which are asked one after the other.
  struct ProcessQueue {
    std::size_t next = 0, end = 0;  // in processes_; next is asked now or will be next
    UniqueFd file{};                // the file of stacks of the process that is asked
    off_t before = 0, size = 0;     // that file's size at the signal, and now
    TimePoint asked_at{}, grown_at{};
  };
  void add(const Rank& rank, const std::vector<ProcessEntry>& all);
  void poll_queues();
  bool advance(ProcessQueue& queue);
  bool ask(ProcessQueue& queue);
  static std::optional<ProcessEntry> find_process(const Process& process);
  void read_python(ProcessQueue& queue);
  void begin_native();
  void start_readers();
  void read_native(std::size_t index);
  void answered(std::size_t index, const std::string& problem, const std::string& answer);
  void report_without_reader(Process& process);
  void continue_processes();
  void finish();

  EventLoop& loop_;
  const Environment& own_;
  const TimePoint deadline_;
  Done done_;
  wire::StackReply reply_;
  std::vector<Process> processes_;
  std::vector<ProcessQueue> queues_;
  StackReader program_;
  bool has_killed_ = false;  // at least one reader
  EventLoop::Timer timer_{};
  EventLoop::Timer limit_{};
};

// Serves one request at a time: a new request ends the one before.
class StackService : public AgentService {
 public:
  explicit StackService(const ServiceContext& agent) : agent_(agent) {}

  Handled handle(const Frame& frame) override;
  bool child_ended(pid_t pid, const ExitStatus& status) override {
    return run_ && run_->child_ended(pid, status);
  }
  // Readers may hold ranks now, which are stopped meanwhile.
  bool is_reading() const { return run_ != nullptr; }

 private:
  void begin(const wire::StackRequest& request);

  const ServiceContext& agent_;
  std::unique_ptr<StackRun> run_;
};

}  // namespace hv::launcher
