// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_process.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <future>
#include <utility>

#include "runtime/backend/mpi/mpi_plugin.h"
#include "src/base/environment.h"
#include "src/base/knob.h"
#include "src/base/signal_block.h"
#include "src/contract/runtime_knobs.h"

namespace hv::mpi {

MpiThread::MpiThread() {
  const SignalBlock block;
  std::thread thread([this] { serve(); });
  id_ = thread.get_id();
  thread.detach();
}

void MpiThread::post(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  work_.push_back(std::move(work));
  ++posted_;
  if (is_own()) posted_by_work_ = posted_;
  changed_.notify_one();
}

void MpiThread::run(const std::function<void()>& work) {
  std::promise<void> done;
  std::future<void> outcome = done.get_future();
  post([&work, promise = std::make_shared<std::promise<void>>(std::move(done))] {
    try {
      work();
      promise->set_value();
    } catch (...) {
      promise->set_exception(std::current_exception());
    }
  });
  outcome.get();
}

void MpiThread::drain(const std::function<bool()>& is_enough) {
  std::unique_lock lock(mutex_);
  const std::uint64_t all = posted_;
  ended_.wait(lock, [&] { return done_ >= std::max(all, posted_by_work_) || is_enough(); });
}

void MpiThread::wake() {
  const std::lock_guard lock(mutex_);
  ended_.notify_all();
}

bool MpiThread::is_idle() {
  const std::lock_guard lock(mutex_);
  return done_ == posted_;
}

void MpiThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !work_.empty(); });
    std::function<void()> next = std::move(work_.front());
    work_.pop_front();
    lock.unlock();
    next();
    next = nullptr;  // what it held may post more, as it goes
    lock.lock();
    ++done_;
    ended_.notify_all();
  }
}

namespace {

const char* level_name(int level) {
  if (level == MPI_THREAD_SINGLE) return "MPI_THREAD_SINGLE";
  if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
  return level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED" : "MPI_THREAD_MULTIPLE";
}

}  // namespace

Status check(int result, const char* doing) {
  if (result == MPI_SUCCESS) return Status::success();
  char words[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  const bool has_words = MPI_Error_string(result, words, &length) == MPI_SUCCESS;
  return {StatusCode::kSystem,
          std::string(doing) + ": MPI: " + (has_words ? words : "error " + std::to_string(result))};
}

MpiProcess& MpiProcess::of_process() {
  static MpiProcess* const process = new MpiProcess;
  return *process;
}

Status MpiProcess::obstacle(bool is_wired) const {
  const auto cannot = [](const std::string& words) {
    return Status{StatusCode::kUnsupported, "use MPI" + words};
  };
  if (begun_by_ != 0 && begun_by_ != ::getpid())
    return cannot(
        ": this process was forked from one that has begun it; try: start processes before "
        "hvd.init() or hvrun_init, or by multiprocessing's \"spawn\"");
  if (is_given_up_)
    return cannot(
        " again: a job of this process has failed, or has lost other ranks, and MPI with it; try: "
        "start the job anew, or HVRUN_BACKEND=native, which goes on with those that are left");
  int is_begun = 0, is_ended = 0, level = MPI_THREAD_SINGLE;
  MPI_Initialized(&is_begun);
  MPI_Finalized(&is_ended);
  if (is_ended != 0)
    return cannot(
        ": this program has called MPI_Finalize already; try: hvd.shutdown() or hvrun_shutdown "
        "before that");
  if (is_begun != 0) MPI_Query_thread(&level);
  // What we have begun we call in the way that it allows.
  if (begun_by_ != 0 || (is_begun != 0 && level >= MPI_THREAD_SERIALIZED)) return Status::success();
  if (is_begun != 0)
    return cannot(std::string(": this program has begun it with ") + level_name(level) +
                  ", and hvrun calls it in threads of its own; try: MPI_Init_thread with "
                  "MPI_THREAD_MULTIPLE, or mpi4py.rc.thread_level = 'multiple' before mpi4py.MPI "
                  "is imported, or hvd.init() first");
  if (is_wired) return Status::success();
  return cannot(
      ": nothing has told this rank how MPI finds the others; try: hvrun --wire-mpi, hvrun --mpi, "
      "mpirun, or srun --mpi=pmix");
}

Status MpiProcess::begin() {
  const std::lock_guard lock(mutex_);
  if (begun_by_ != 0) return begun_;
  if (thread_ == nullptr) thread_ = std::make_unique<MpiThread>();  // a begin may have thrown
  thread_->run([&] { begun_ = begin_here(); });
  begun_by_ = ::getpid();
  return begun_;
}

// In the thread that ends it, too.
Status MpiProcess::begin_here() {
  int is_begun = 0;
  MPI_Initialized(&is_begun);
  if (is_begun != 0) {
    MPI_Query_thread(&level_);
    return Status::success();
  }
  const bool is_single =
      KnobReader(runtime_knobs(), Environment::of_process()).flag("HVRUN_MPI_THREADS_DISABLE");
  const int wanted = is_single ? MPI_THREAD_SINGLE : MPI_THREAD_MULTIPLE;
  if (Status status = check(MPI_Init_thread(nullptr, nullptr, wanted, &level_), "begin MPI");
      !status.ok())
    return status;
  std::atexit([] { of_process().end(); });
  return Status::success();
}

// A process that has lost others, or has not left its job, is itself a loss: MPI's end would wait
// for those that it keeps waiting. MPI itself may be what ends the process.
void MpiProcess::end() {
  if (is_given_up_ || begun_by_ != ::getpid() || thread_->is_own()) return;
  thread_->run([this] {
    int is_ended = 0;
    MPI_Finalized(&is_ended);
    if (is_ended == 0 && communicators_ == 0) MPI_Finalize();
    is_given_up_ = true;
  });
}

void MpiProcess::settle() {
  if (begun_by_ != ::getpid()) return;
  thread_->drain([this] { return is_given_up_.load(); });
}

void MpiProcess::give_up() {
  is_given_up_ = true;
  thread_->wake();
}

void MpiProcess::free(MPI_Comm communicator) {
  int is_ended = 0;
  MPI_Finalized(&is_ended);
  if (is_ended == 0 && !is_given_up_ && communicator != MPI_COMM_NULL) MPI_Comm_free(&communicator);
}

void MpiProcess::within(const std::function<void()>& calls) {
  if (has_all_threads()) {
    calls();
  } else {
    thread_->run(calls);
  }
}

std::string library_text() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  MPI_Get_library_version(text, &length);
  return runtime::library_words(text);
}

}  // namespace hv::mpi
