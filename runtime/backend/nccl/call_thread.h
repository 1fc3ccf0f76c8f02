// CallThread: where one communicator's calls are made, with an NCCL older than 2.27.
// SPDX-License-Identifier: Apache-2.0
//
// There a group that goes on behind its call lies in the calling thread's own memory: calls of
// another communicator would join it, and the thread's end would take it away from NCCL.
#pragma once

#include <condition_variable>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

namespace hv::nccl {

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

}  // namespace hv::nccl
