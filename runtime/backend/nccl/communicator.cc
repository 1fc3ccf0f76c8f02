// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/nccl/communicator.h"

#include <chrono>
#include <new>
#include <utility>

#include "runtime/backend/nccl/ends.h"
#include "src/base/signal_block.h"

namespace hv::nccl {

CallThread::CallThread() {
  const SignalBlock block;
  thread_ = std::thread([this] { serve(); });
}

CallThread::~CallThread() {
  {
    const std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CallThread::run(const std::function<void()>& work) {
  std::unique_lock lock(mutex_);
  work_ = &work;
  changed_.notify_all();
  changed_.wait(lock, [this] { return work_ == nullptr; });
  if (const std::exception_ptr thrown = std::exchange(thrown_, nullptr))
    std::rethrow_exception(thrown);
}

void CallThread::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return work_ != nullptr || is_ending_; });
    if (work_ == nullptr) return;
    lock.unlock();
    std::exception_ptr thrown;
    try {
      (*work_)();
    } catch (...) {
      thrown = std::current_exception();
    }
    lock.lock();
    thrown_ = thrown;
    work_ = nullptr;
    changed_.notify_all();
  }
}

namespace {

constexpr std::chrono::milliseconds kBetweenLooks{1};
constexpr int kRevokeDefault = 0;

// That a peer's end looks like, too.
bool is_perhaps_a_peers(int result) { return result == kRemoteError || result == kSystemError; }

}  // namespace

Communicator::Communicator(std::shared_ptr<const Library> library,
                           std::shared_ptr<cuda::Device> device, int members, int self,
                           std::shared_ptr<runtime::GpuJob> job)
    : library_(std::move(library)),
      device_(std::move(device)),
      members_(members),
      self_(self),
      job_(std::move(job)) {
  if (library_->version() < kOwnGroupsFrom) thread_ = std::make_shared<CallThread>();
}

Status Communicator::within(const std::function<Status()>& calls) {
  if (thread_ == nullptr) return device_->within(calls);
  Status status;
  thread_->run([&] { status = device_->within(calls); });
  return status;
}

Status Communicator::begin(std::shared_ptr<const Library> library,
                           std::shared_ptr<cuda::Device> device, const UniqueId& id, int members,
                           int self, std::shared_ptr<runtime::GpuJob> job,
                           std::unique_ptr<Communicator>* made) {
  std::unique_ptr<Communicator> one(
      new Communicator(std::move(library), std::move(device), members, self, std::move(job)));
  Status status = one->within([&] {
    Config config;
    config.blocking = 0;
    const int result = one->library_->call().init_rank(&one->comm_, members, id, self, &config);
    // It may be over already: a peer has gone, and poll() waits to be told which.
    if (is_perhaps_a_peers(result) && one->comm_ != nullptr) return Status::success();
    return one->library_->check(result, "make a communicator");
  });
  if (!status.ok()) return status;
  *made = std::move(one);
  return Status::success();
}

Status Communicator::poll(const char* doing) {
  return device_->within([&] {
    int state = kSuccess;
    const int result = library_->call().async_error(comm_, &state);
    if (Status asked = library_->check(result, "ask how far it is", comm_); !asked.ok())
      return asked;
    if (state == kInProgress) return Status{StatusCode::kInProgress, {}};
    if (is_perhaps_a_peers(state) && peers_end_.may_yet_be_told())
      return Status{StatusCode::kInProgress, {}};
    return library_->check(state, doing, comm_);
  });
}

// Where there is no memory for that it stays, as what it uses does.
Communicator::~Communicator() {
  try {
    abort();
  } catch (const std::bad_alloc&) {
    (void)windows_.release();
  }
}

// The driver's way to free it may wait for work of the GPU, so a thread of its own does that.
Status Communicator::allocate(std::size_t bytes, runtime::MemoryPtr* memory) {
  void* made = nullptr;
  Status status = library_->check(library_->call().allocate(&made, bytes), "allocate it", comm_);
  if (!status.ok()) return status;
  *memory = {static_cast<std::byte*>(made),
             [library = library_, device = device_](std::byte* piece) {
               Ends::of_process().give_up([library, device, piece] {
                 // What it answers helps nobody.
                 (void)device->within(
                     [&] { return library->check(library->call().free(piece), "free a window"); });
               });
             }};
  return Status::success();
}

Status Communicator::begin_window(std::size_t bytes, runtime::MemoryPtr* memory) {
  return device_->within([&] {
    WindowMemory& made = windows_->emplace_back();
    Status status = allocate(bytes, &made.memory);
    if (status.ok()) {
      *memory = made.memory;
      status = library_->check(library_->call().register_window(comm_, memory->get(), bytes,
                                                                &made.window, kSymmetricWindow),
                               "register it", comm_);
    }
    return status;
  });
}

// NCCL does not see of every peer that it has died, and would wait for it.
Status Communicator::await(Status status, const char* doing) {
  if (status.ok()) status = poll(doing);
  while (status.code == StatusCode::kInProgress && !has_job_failed()) {
    std::this_thread::sleep_for(kBetweenLooks);
    status = poll(doing);
  }
  return status;
}

void Communicator::end() {
  Status status;
  for (const WindowMemory& one : *windows_) {
    if (!status.ok() || one.window == nullptr) continue;
    const char* const doing = "give back a window";
    status = device_->within([&] {
      return library_->check(library_->call().deregister_window(comm_, one.window), doing, comm_);
    });
    status = await(std::move(status), doing);
  }
  const char* const doing = "end a communicator";
  if (status.ok())
    status =
        within([&] { return library_->check(library_->call().finalize(comm_), doing, comm_); });
  if (!await(std::move(status), doing).ok()) {
    abort();
    return;
  }
  const Comm comm = std::exchange(comm_, nullptr);
  // Nothing could be done about what it answers, nor by the one who asked for the end.
  (void)within(
      [&] { return library_->check(library_->call().destroy(comm), "free a communicator"); });
  windows_->clear();
}

void Communicator::abort() {
  if (comm_ == nullptr) return;
  const Comm comm = comm_;
  const auto over = std::make_shared<std::promise<void>>();
  given_up_ = over->get_future();
  Ends::of_process().give_up([library = library_, device = device_, thread = thread_, comm, over,
                              windows = std::shared_ptr<Windows>(std::move(windows_))] {
    // What they answer helps nobody: the job has failed already, in words. Kernels end by the first
    // one, where there is that; the second waits for more.
    (void)device->within([&] {
      const LibraryFunctions& call = library->call();
      if (call.revoke != nullptr) (void)call.revoke(comm, kRevokeDefault);
      return library->check(call.abort(comm), "give up a communicator");
    });
    over->set_value();
    windows->clear();
  });
  comm_ = nullptr;
}

bool Communicator::has_let_go(Duration within) const {
  return !given_up_.valid() || given_up_.wait_for(within) == std::future_status::ready;
}

}  // namespace hv::nccl
