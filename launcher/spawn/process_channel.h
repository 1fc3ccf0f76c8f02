// ProcessChannel: an AgentChannel over a program that runs here: the agent itself, or a command
// that reaches a host.
// SPDX-License-Identifier: Apache-2.0
//
// The program's stdin and stdout are one socket, its stderr a pipe that is read all the time and
// kept to a bound.
#pragma once

#include <boost/asio/local/stream_protocol.hpp>
#include <functional>
#include <memory>

#include "launcher/spawn/spawner.h"
#include "src/process/command.h"

namespace hv::launcher {

// What becomes of the program when the channel closes.
enum class AtClose {
  kLeave,  // an agent: it sees the end of its stream and clears up by itself
  // A go-between: it and its children are told to end, and end_go_betweens() sees to it that none
  // outlives hvrun. When hvrun is killed the kernel ends the command itself; its children see their
  // streams close.
  kTerminate,
};

class ProcessChannel : public AgentChannel {
 public:
  // Throws Error(kStart) that says doing ("start the agent on this machine").
  ProcessChannel(boost::asio::any_io_executor executor, const Command& command, AtClose at_close,
                 const std::string& doing);
  ~ProcessChannel() override;

  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<bool> write(boost::asio::const_buffer buffer) override;
  void close() override;
  std::string last_words() const override;
  // Called whenever the program has written to stderr, until the channel is closed.
  void when_it_speaks(std::function<void()> told);
  bool ended_well() const;  // with exit code 0, as far as known
  // Until the program has ended, however long after its stream, or the channel is closed.
  boost::asio::awaitable<void> wait_for_end();

 private:
  struct Child;  // shared with the coroutines that read stderr and await the exit
  static boost::asio::awaitable<void> collect_stderr(std::shared_ptr<Child> child);
  static boost::asio::awaitable<void> await_exit(std::shared_ptr<Child> child);
  boost::asio::awaitable<void> let_it_exit();

  boost::asio::local::stream_protocol::socket stream_;
  std::shared_ptr<Child> child_;
  bool closed_ = false;
};

// All that a short program prints on stdout, once it has ended.
struct CommandOutput {
  std::string text;
  bool clean = false;  // exit code 0
  std::string words;   // how it ended and its stderr
};
// Runs it to its end, at most limit bytes of output; once more without LD_LIBRARY_PATH and
// LD_PRELOAD where these keep it from running. cancel: receives a function that breaks it off.
boost::asio::awaitable<CommandOutput> run_command(Command command, std::size_t limit,
                                                  std::string doing, std::function<void()>* cancel);

}  // namespace hv::launcher
