// One communicator of NCCL's: among the members of a process set, each with a GPU.
// SPDX-License-Identifier: Apache-2.0
//
// Not blocking: each call may only have begun when it returns, and the next one must wait until
// poll() says that it is done. One thread at a time, but for what ends it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <exception>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/backend/backend.h"
#include "runtime/backend/gpu/gpu_plugin.h"
#include "runtime/backend/nccl/nccl_library.h"
#include "runtime/device/cuda/device.h"

namespace hv::nccl {

// CallThread: where one communicator's calls are made, with an NCCL older than 2.27.
// There a group that goes on behind its call lies in the calling thread's own memory: calls of
// another communicator would join it, and the thread's end would take it away from NCCL.
class CallThread {
 public:
  CallThread();
  ~CallThread();  // once NCCL has completed or given up what it was asked for here
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;

  // Returns when it is done, or throws what that has thrown. One caller at a time.
  void run(const std::function<void()>& work);

 private:
  void serve();

  std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  const std::function<void()>* work_ = nullptr;
  std::exception_ptr thrown_;
  bool is_ending_ = false;
  std::thread thread_;
};

class Communicator {
 public:
  // All members call it, with the id that the first has made. kInProgress is no failure: poll().
  static Status begin(std::shared_ptr<const Library> library, std::shared_ptr<cuda::Device> device,
                      const UniqueId& id, int members, int self,
                      std::shared_ptr<runtime::GpuJob> job, std::unique_ptr<Communicator>* made);
  // One that has not ended is given up, as by abort().
  ~Communicator();
  Communicator(const Communicator&) = delete;
  Communicator& operator=(const Communicator&) = delete;

  const Library& library() const { return *library_; }
  cuda::Device& device() const { return *device_; }
  Comm get() const { return comm_; }
  int members() const { return members_; }
  int self() const { return self_; }

  // Makes calls of NCCL's, for which the GPU is current, where this communicator's are made.
  Status within(const std::function<Status()>& calls);
  // kInProgress: the last call has not been carried out yet. Else kSystem with NCCL's words: of
  // what may be a peer's end only once there was time to learn who has ended, which others tell.
  Status poll(const char* doing);
  // Begins to make a window: memory of NCCL's that peers reach, at the same place of theirs. All
  // members do it together, for as many bytes; it is there once poll() says so. The memory stays
  // until neither the communicator nor anybody else has it.
  Status begin_window(std::size_t bytes, runtime::MemoryPtr* memory);
  // Once the GPU has done what it was given: returns when the peers have ended it, too, or one of
  // them has died, or the job has failed. Nothing is asked of it any more.
  void end();
  bool is_given_up() const { return comm_ == nullptr; }
  runtime::GpuJob& job() const { return *job_; }
  // NCCL may not see that a peer is dead.
  bool has_job_failed() const { return job_->has_failed; }
  // What of it runs on the GPU ends, with any result; a thread of its own does that, which may take
  // long. Nothing is asked of it any more.
  void abort();
  // Of one that was aborted: before, NCCL's threads may launch still what they were given, on
  // memory that others want back.
  bool has_let_go(Duration within = Duration::zero()) const;  // waits for so long

 private:
  struct WindowMemory {
    runtime::MemoryPtr memory;
    Window window = nullptr;  // which NCCL writes at some time; still nullptr: it makes none here
  };
  // A deque: NCCL keeps the addresses of its elements for a while.
  using Windows = std::deque<WindowMemory>;

  Communicator(std::shared_ptr<const Library> library, std::shared_ptr<cuda::Device> device,
               int members, int self, std::shared_ptr<runtime::GpuJob> job);
  Status allocate(std::size_t bytes, runtime::MemoryPtr* memory);
  Status await(Status status, const char* doing);

  const std::shared_ptr<const Library> library_;
  const std::shared_ptr<cuda::Device> device_;
  const int members_, self_;
  const std::shared_ptr<runtime::GpuJob> job_;
  std::shared_ptr<CallThread> thread_;  // nullptr: whoever comes
  Comm comm_ = nullptr;
  std::unique_ptr<Windows> windows_ = std::make_unique<Windows>();
  runtime::PeersEnd peers_end_;
  std::shared_future<void> given_up_;  // invalid: abort() had nothing to do
};

}  // namespace hv::nccl
