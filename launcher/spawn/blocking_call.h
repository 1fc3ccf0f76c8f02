// BlockingCall: something that can only be had by blocking, in a thread of its own that nobody has
// to wait for.
// SPDX-License-Identifier: Apache-2.0
//
// The thread shares what the work has captured, touches neither the io_context nor its maker, and
// may outlive both.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <functional>
#include <memory>
#include <string>

namespace hv::launcher {

class BlockingCall {
 public:
  // Throws Error(kStart) that says doing when there is no thread or pipe to be had.
  BlockingCall(boost::asio::any_io_executor executor, const std::string& doing,
               std::function<void()> work);

  // True once the work is through: what it has written can be read then. False after abandon(): it
  // belongs to the thread alone.
  boost::asio::awaitable<bool> done();
  void abandon();

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;
  boost::asio::posix::stream_descriptor answered_;  // ends when the thread has closed its end
  bool is_abandoned_ = false;
};

}  // namespace hv::launcher
