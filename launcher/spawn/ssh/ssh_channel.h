// SshChannel: an AgentChannel over one command on a libssh session.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "launcher/spawn/spawner.h"
#include "launcher/spawn/ssh/ssh_library.h"
#include "launcher/spawn/ssh/ssh_session.h"

namespace hv::launcher {

class SshChannel : public AgentChannel {
 public:
  explicit SshChannel(std::shared_ptr<SshSession> session) : session_(std::move(session)) {}
  ~SshChannel() override;
  SshChannel(const SshChannel&) = delete;
  SshChannel& operator=(const SshChannel&) = delete;

  // Opens the channel and runs a command there; false with words when the host refuses.
  boost::asio::awaitable<bool> execute(std::string command, std::string* why);

  boost::asio::awaitable<std::size_t> read_some(boost::asio::mutable_buffer buffer) override;
  boost::asio::awaitable<bool> write(boost::asio::const_buffer buffer) override;
  void close() override;
  std::string last_words() const override;

 private:
  void listen_to_callbacks();
  bool usable() const { return channel_ && !session_->is_closed(); }
  std::size_t take(char* bytes, std::size_t size);
  boost::asio::awaitable<void> await_exit_status();

  std::shared_ptr<SshSession> session_;
  ssh_channel channel_ = nullptr;  // freed by the session when that closes
  ssh_channel_callbacks_struct callbacks_{};
  std::string stderr_tail_;
  std::string trouble_;  // how the stream broke; empty: the host ended it
  int exit_status_ = -1;
};

}  // namespace hv::launcher
