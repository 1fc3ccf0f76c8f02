// A stream of the stand-in: a thread that does what was put on it, in that order, with delays; and
// events, which say how far it has come.
// SPDX-License-Identifier: Apache-2.0
//
// Any thread may call.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <set>

namespace hv::fake {

// Recorded again and again, on any stream: what waits for it waits for the latest record before,
// whatever becomes of others.
class FakeEvent {
 public:
  std::uint64_t record();           // the caller will have a stream mark it
  void mark(std::uint64_t record);  // a stream has come there
  std::uint64_t latest() const;     // 0: never recorded
  bool has_passed(std::uint64_t record) const;
  void await(std::uint64_t record);  // blocks

 private:
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable passed_;
  std::uint64_t recorded_ = 0;
  std::set<std::uint64_t> pending_;  // records that no stream has come to
};

class FakeStream {
 public:
  // Its thread is never joined: work that hangs must not keep the process from ending.
  static std::shared_ptr<FakeStream> start(int device);

  void put(std::function<void()> work);
  // What comes now never ends.
  void hang();
  void record(const std::shared_ptr<FakeEvent>& event);
  void wait_for(const std::shared_ptr<FakeEvent>& event);
  bool is_idle() const;
  void await_idle();
  void end();  // when all is done that was put
  // The first CUresult of its work that was not 0; it does nothing any more then, as a context that
  // is broken.
  int failure() const;
  void fail(int result);
  static int failures() { return failures_; }  // of all streams, by now
  int device() const { return device_; }
  std::uint64_t id() const { return id_; }  // of no other stream of this process, ever

  bool is_captured = false;               // see fake_cuda.h, as the next
  std::atomic<int> forbidden_records{0};  // by so many

 private:
  explicit FakeStream(int device) : device_(device) {}
  void run();

  static inline std::atomic<std::uint64_t> last_id_{0};
  static inline std::atomic<int> failures_{0};

  const int device_;
  const std::uint64_t id_ = ++last_id_;
  mutable std::mutex mutex_;  // guards all below
  std::condition_variable changed_;
  std::deque<std::function<void()>> work_;
  bool is_busy_ = false;
  bool is_ending_ = false;
  int failure_ = 0;
};

}  // namespace hv::fake
