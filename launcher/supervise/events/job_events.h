// JobEvents: everything that happens to a running job, as values in one queue that one function
// dispatches, on the io_context thread, in the order of arrival.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <utility>
#include <variant>

#include "launcher/supervise/hosts/host_link.h"
#include "src/wire/frame.h"

namespace hv::launcher {

struct FrameArrived {
  LinkId link;
  Frame frame;
};
struct LinkEnded {
  LinkId link;
  std::string reason;
};
struct OutputWritten {
  std::uint32_t rank = 0;
  std::size_t bytes = 0;
};
// A sink cannot be written any more. text: "write to ...". stream: 1 or 2 for the console, 0 for a
// file.
struct OutputFailed {
  std::string text;
  int errno_value = 0;
  int stream = 0;
};
// So many bytes of what rank 0 returns have been written to the descriptor of --result-fd.
struct ResultWritten {
  std::size_t bytes = 0;
};
// That descriptor cannot be written any more.
struct ResultFailed {
  int errno_value = 0;
};
// From hvrun's standard input; no bytes: its end.
struct InputRead {
  std::string bytes;
};
struct InputFailed {
  int errno_value = 0;
};
struct SignalReceived {
  int signal = 0;
};
struct TimeLimitReached {};
// A line of HV_LOG.
struct LineLogged {
  std::string line;
};

using JobEvent =
    std::variant<FrameArrived, LinkEnded, OutputWritten, OutputFailed, ResultWritten, ResultFailed,
                 InputRead, InputFailed, SignalReceived, TimeLimitReached, LineLogged>;

class JobEvents : public LinkObserver {
 public:
  using Dispatch = std::function<void(JobEvent event)>;

  // idle: called on the io_context thread after each batch of events. Events that come before
  // start() wait for it. Outlives the executor's run.
  explicit JobEvents(boost::asio::any_io_executor executor) : executor_(std::move(executor)) {}
  void start(Dispatch dispatch, std::function<void()> idle);

  // From any thread; does not block.
  void add(JobEvent event);

  void on_frame(const LinkId& link, Frame frame) override {
    add(FrameArrived{link, std::move(frame)});
  }
  void on_link_ended(const LinkId& link, std::string reason) override {
    add(LinkEnded{link, std::move(reason)});
  }

 private:
  void schedule();
  void dispatch_all();

  boost::asio::any_io_executor executor_;
  std::mutex mutex_;  // guards all below; dispatch_ and idle_ are constant after start()
  Dispatch dispatch_;
  std::function<void()> idle_;
  std::deque<JobEvent> waiting_;
  bool is_due_ = false;  // dispatch_all() has been posted and has not begun
};

}  // namespace hv::launcher
