// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/communicator.h"

#include <algorithm>
#include <utility>

#include "src/base/signal_block.h"
#include "tests/fakes/cuda/faults.h"
#include "tests/fakes/nccl/gpu_turns.h"
#include "tests/fakes/nccl/outside.h"

namespace hv::fake {

// What a group has of one communicator: put on each of its streams, performed on one of them when
// all have come to it, and the others wait there.
class Communicator::Work {
 public:
  Work(std::shared_ptr<Communicator> owner, std::uint64_t turn, std::vector<Operation> of_group)
      : number(turn), operations(std::move(of_group)), owner_(std::move(owner)) {
    for (const Operation& one : operations)
      if (std::find(streams_.begin(), streams_.end(), one.stream) == streams_.end())
        streams_.push_back(one.stream);
  }

  static void put(const std::shared_ptr<Work>& work) {
    work->gpu_turn = GpuTurns::of_process().take(work->owner_->self_.device);
    for (const cuda::Stream stream : work->streams_)
      cuda_functions().put(
          stream,
          [](void* argument) {
            const std::unique_ptr<std::shared_ptr<Work>> own(
                static_cast<std::shared_ptr<Work>*>(argument));
            (*own)->arrive();
          },
          new std::shared_ptr<Work>(work));
  }

  // While it is about to be put there. What is given up stays so: the streams may have gone.
  void forbid_records(bool is_on) const {
    for (const cuda::Stream stream : streams_) cuda_functions().forbid_records(stream, is_on);
  }

  bool has_default_stream() const {
    return std::find(streams_.begin(), streams_.end(), nullptr) != streams_.end();
  }

  const std::uint64_t number;
  const std::vector<Operation> operations;
  std::uint64_t gpu_turn = 0;  // set when it is put on its streams

 private:
  void arrive() {
    {
      std::unique_lock lock(owner_->mutex_);
      if (++arrived_ < streams_.size()) {
        owner_->changed_.wait(lock, [this] { return is_done_ || owner_->work_stop_.is_set(); });
        return;
      }
    }
    owner_->await_turn_and_perform(*this);
    const std::lock_guard lock(owner_->mutex_);
    is_done_ = true;
    owner_->changed_.notify_all();
  }

  const std::shared_ptr<Communicator> owner_;
  std::vector<cuda::Stream> streams_;
  std::size_t arrived_ = 0;  // as is_done_ guarded by the owner's mutex
  bool is_done_ = false;
};

// ---- its thread ----

Communicator::Communicator(const Member& self, bool is_blocking)
    : self_(self), is_blocking_(is_blocking) {}

void Communicator::start(FindId find_id, bool hangs) {
  post([this, find_id = std::move(find_id), hangs] {
    nccl::UniqueId id = {};
    std::string why = "no id was agreed on";
    if (hangs) await_readable({}, stop_);
    int result = find_id(&id, stop_);
    if (result == nccl::kSuccess) result = join_meeting(id, self_, stop_, &party_, &why);
    if (result == nccl::kInProgress) return nccl::kSuccess;  // it was stopped
    if (result != nccl::kSuccess) return fail(result, why);
    const std::lock_guard lock(mutex_);
    has_met_ = true;
    return nccl::kSuccess;
  });
  // As NCCL's own threads it takes no signal of the program's.
  const SignalBlock block;
  thread_ = std::thread([this] { run(); });
}

int Communicator::post(std::function<int()> task) {
  const std::lock_guard lock(mutex_);
  tasks_.push_back(std::move(task));
  is_busy_ = true;
  changed_.notify_all();
  return nccl::kInProgress;
}

void Communicator::run() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !tasks_.empty() || is_leaving_ || stop_.is_set(); });
    if (stop_.is_set() || tasks_.empty()) break;
    const std::function<int()> task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task();
    lock.lock();
    is_busy_ = !tasks_.empty();
    changed_.notify_all();
  }
  is_busy_ = false;
  changed_.notify_all();
}

int Communicator::await_idle() {
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !is_busy_; });
  }
  return async_error();
}

int Communicator::async_error() {
  const std::lock_guard lock(mutex_);
  for (std::size_t peer = 0; has_met_ && peer < party_.alive.size(); ++peer)
    if (!is_alive(&party_.alive[peer]) && error_ == nccl::kSuccess)
      error_of(nccl::kRemoteError, "rank " + std::to_string(peer) + " has died");
  if (error_ != nccl::kSuccess) return error_;
  return is_busy_ ? nccl::kInProgress : nccl::kSuccess;
}

std::string Communicator::last_error() {
  const std::lock_guard lock(mutex_);
  return last_error_;
}

int Communicator::check_ready() {
  const int state = async_error();
  if (state == nccl::kSuccess) has_open_group_ = false;
  if (state != nccl::kInProgress) return state;
  const std::lock_guard lock(mutex_);
  last_error_ = "Attempt to use communicator before the previous operation returned ncclSuccess";
  return nccl::kInvalidArgument;
}

int Communicator::check_launchable() {
  if (const int state = check_ready(); state != nccl::kSuccess) return state;
  const std::lock_guard lock(mutex_);
  if (!is_finalized_ && !work_stop_.is_set()) return nccl::kSuccess;
  last_error_ = "the communicator has been finalized or revoked";
  return nccl::kInvalidUsage;
}

int Communicator::fail(int result, const std::string& why) {
  const std::lock_guard lock(mutex_);
  return error_of(result, why);
}

int Communicator::error_of(int result, const std::string& why) {
  last_error_ = why;
  if (error_ == nccl::kSuccess) error_ = result;
  return result;
}

// ---- work ----

int Communicator::launch(std::vector<Operation> operations) {
  std::shared_ptr<Work> work;
  {
    const std::lock_guard lock(mutex_);
    work = std::make_shared<Work>(shared_from_this(), launched_++, std::move(operations));
  }
  // The default stream is the calling thread's.
  const auto delay = is_blocking_ || work->has_default_stream() ? std::chrono::microseconds(0)
                                                                : Faults::of_process().next_delay();
  if (delay.count() == 0) {
    Work::put(work);
    return nccl::kSuccess;
  }
  work->forbid_records(true);
  return post([this, work, delay] {
    {
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, delay, [this] { return work_stop_.is_set(); });
      if (work_stop_.is_set()) return nccl::kSuccess;
    }
    Work::put(work);
    work->forbid_records(false);
    return nccl::kSuccess;
  });
}

int Communicator::await_turn_and_perform(const Work& work) {
  GpuTurns& gpu = GpuTurns::of_process();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return done_ == work.number || work_stop_.is_set(); });
    if (work_stop_.is_set()) {
      gpu.end(self_.device, work.gpu_turn);
      return nccl::kSuccess;
    }
    ++performing_;
  }
  gpu.await(self_.device, work.gpu_turn, work_stop_);
  perform(work.operations, party_.work, work_stop_);
  gpu.end(self_.device, work.gpu_turn);
  const std::lock_guard lock(mutex_);
  --performing_;
  ++done_;
  changed_.notify_all();
  return nccl::kSuccess;
}

void Communicator::wait_for_work(std::unique_lock<std::mutex>& lock) {
  changed_.wait(lock, [this] { return done_ == launched_ || work_stop_.is_set(); });
}

// NCCL's numbers of them follow on its own reductions.
int Communicator::make_reduction(const Reduction& reduction, int type) {
  const std::lock_guard lock(mutex_);
  const int number =
      reductions_.empty() ? kPremultipliedSum : std::prev(reductions_.end())->first + 1;
  reductions_[number] = {reduction, type};
  return number;
}

bool Communicator::find_reduction(int number, int type, Reduction* reduction) const {
  const std::lock_guard lock(mutex_);
  const auto found = reductions_.find(number);
  if (found == reductions_.end() || found->second.second != type) return false;
  *reduction = found->second.first;
  return true;
}

int Communicator::destroy_reduction(int number) {
  const std::lock_guard lock(mutex_);
  return reductions_.erase(number) == 0 ? nccl::kInvalidArgument : nccl::kSuccess;
}

// ---- what all ranks do together, and the end ----

void Communicator::hang() {
  post([this] {
    await_readable({}, stop_);
    return nccl::kSuccess;
  });
}

int Communicator::meet_all(Call call, std::uint64_t bytes, std::function<void()> done) {
  return post([this, call, bytes, done = std::move(done)] {
    if (meet(call, bytes, party_.host, stop_)) done();
    return nccl::kSuccess;
  });
}

int Communicator::finalize() {
  {
    const std::lock_guard lock(mutex_);
    if (is_finalized_ || work_stop_.is_set()) return nccl::kInvalidUsage;
    is_finalized_ = true;
  }
  return post([this] {
    {
      std::unique_lock lock(mutex_);
      wait_for_work(lock);
    }
    meet(Call::kFinalize, 0, party_.host, stop_);
    return nccl::kSuccess;
  });
}

int Communicator::revoke() {
  const std::lock_guard lock(mutex_);
  work_stop_.set();
  GpuTurns::of_process().wake();
  changed_.notify_all();
  return nccl::kSuccess;
}

int Communicator::agree_on_id(const std::vector<int>& staying, nccl::UniqueId* id,
                              const StopSign& stop) {
  {
    const std::lock_guard lock(mutex_);
    if (!has_met_ || stop_.is_set()) return nccl::kInvalidUsage;
    ++performing_;
  }
  const bool is_first = staying.front() == self_.rank;
  if (is_first) *id = make_meeting();
  std::vector<Transfer> transfers;
  for (const int peer : staying) {
    if (peer == self_.rank || (!is_first && peer != staying.front())) continue;
    const Label label{Call::kShrink, 0, 0, 0, staying.size(), sizeof *id};
    transfers.push_back({peer, is_first, reinterpret_cast<std::byte*>(id), label});
  }
  const bool have_all = party_.host.exchange(transfers, stop, &stop_);
  const std::lock_guard lock(mutex_);
  --performing_;
  changed_.notify_all();
  return have_all ? nccl::kSuccess : nccl::kInvalidUsage;
}

void Communicator::stop() {
  {
    const std::lock_guard lock(mutex_);
    work_stop_.set();
    GpuTurns::of_process().wake();
    stop_.set();
    changed_.notify_all();
  }
  has_open_group_ = false;
  thread_.join();
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return performing_ == 0; });
  tasks_.clear();
  if (has_met_) say_goodbye(party_);
  party_ = {};
  has_met_ = false;
}

void Communicator::leave() {
  {
    std::unique_lock lock(mutex_);
    is_leaving_ = true;
    changed_.notify_all();
    wait_for_work(lock);
  }
  stop();
}

}  // namespace hv::fake
