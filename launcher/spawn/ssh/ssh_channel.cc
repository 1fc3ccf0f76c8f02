// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/ssh/ssh_channel.h"

#include <algorithm>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/this_coro.hpp>

#include "src/base/clock.h"
#include "src/base/text.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

constexpr std::size_t kSshStderrKept = 16 << 10;
// Between the end of a command's stream and the word about how it ended.
constexpr auto kSshExitDelay = std::chrono::milliseconds(1500);

}  // namespace

SshChannel::~SshChannel() { close(); }

void SshChannel::close() {
  channel_ = nullptr;
  session_->close();
}

void SshChannel::listen_to_callbacks() {
  callbacks_.userdata = this;
  // stderr is taken at once, so that it never fills the window that it shares with stdout.
  callbacks_.channel_data_function = [](ssh_session, ssh_channel, void* data, std::uint32_t size,
                                        int is_stderr, void* self) {
    auto* channel = static_cast<SshChannel*>(self);
    channel->session_->wake();
    if (!is_stderr) return 0;
    channel->stderr_tail_.append(static_cast<const char*>(data), size);
    if (channel->stderr_tail_.size() > kSshStderrKept)
      channel->stderr_tail_.erase(0, channel->stderr_tail_.size() - kSshStderrKept);
    return static_cast<int>(size);
  };
  callbacks_.channel_eof_function = [](ssh_session, ssh_channel, void* self) {
    static_cast<SshChannel*>(self)->session_->wake();
  };
  callbacks_.channel_close_function = callbacks_.channel_eof_function;
  callbacks_.channel_exit_status_function = [](ssh_session, ssh_channel, int status, void* self) {
    static_cast<SshChannel*>(self)->exit_status_ = status;
  };
  callbacks_.channel_write_wontblock_function = [](ssh_session, ssh_channel, std::uint32_t,
                                                   void* self) {
    static_cast<SshChannel*>(self)->session_->wake();
    return 0;
  };
  ssh_callbacks_init(&callbacks_);
  libssh().ssh_set_channel_callbacks(channel_, &callbacks_);
}

asio::awaitable<bool> SshChannel::execute(std::string command, std::string* why) {
  channel_ = libssh().ssh_channel_new(session_->raw());
  if (!channel_) {
    *why = session_->error();
    co_return false;
  }
  int result =
      co_await session_->until_done([this] { return libssh().ssh_channel_open_session(channel_); });
  if (result == SSH_OK) {
    listen_to_callbacks();
    result = co_await session_->until_done(
        [this, &command] { return libssh().ssh_channel_request_exec(channel_, command.c_str()); });
  }
  if (result != SSH_OK) *why = session_->error();
  co_return result == SSH_OK;
}

// What has arrived, up to size; libssh gives it in packets.
std::size_t SshChannel::take(char* bytes, std::size_t size) {
  std::size_t got = 0;
  while (got < size) {
    const int count = libssh().ssh_channel_read_nonblocking(
        channel_, bytes + got, static_cast<std::uint32_t>(size - got), 0);
    if (count == SSH_ERROR && got == 0) trouble_ = session_->error();
    if (count <= 0) break;
    got += static_cast<std::size_t>(count);
  }
  return got;
}

asio::awaitable<std::size_t> SshChannel::read_some(asio::mutable_buffer buffer) {
  while (usable()) {
    const std::size_t got = take(static_cast<char*>(buffer.data()), buffer.size());
    if (got > 0) co_return got;
    if (!trouble_.empty() || libssh().ssh_channel_is_eof(channel_) ||
        libssh().ssh_channel_is_closed(channel_))
      break;
    co_await session_->activity();
  }
  co_await await_exit_status();
  co_return 0;
}

asio::awaitable<void> SshChannel::await_exit_status() {
  if (!usable() || !trouble_.empty()) co_return;
  asio::steady_timer timer(co_await asio::this_coro::executor, kSshExitDelay);
  timer.async_wait([session = session_](const boost::system::error_code&) { session->wake(); });
  const auto is_connected = [this] {
    return (libssh().ssh_get_status(session_->raw()) & (SSH_CLOSED | SSH_CLOSED_ERROR)) == 0;
  };
  while (usable() && is_connected() && exit_status_ < 0 &&
         !libssh().ssh_channel_is_closed(channel_) && timer.expiry() > now()) {
    // ssh_channel_poll takes no packet behind the end of the stream; this does, and does not wait.
    if (const int status = libssh().ssh_channel_get_exit_status(channel_); status >= 0)
      exit_status_ = status;
    else if (!libssh().ssh_channel_is_closed(channel_))
      co_await session_->activity();
  }
}

asio::awaitable<bool> SshChannel::write(asio::const_buffer buffer) {
  const auto* bytes = static_cast<const char*>(buffer.data());
  std::size_t left = buffer.size();
  while (usable()) {
    if (left > 0) {
      const int count = libssh().ssh_channel_write(
          channel_, bytes, static_cast<std::uint32_t>(std::min<std::size_t>(left, 1 << 20)));
      if (count == SSH_ERROR || libssh().ssh_channel_is_closed(channel_)) co_return false;
      bytes += count;
      left -= static_cast<std::size_t>(count);
      if (count > 0 && left > 0) continue;
    } else if (libssh().ssh_blocking_flush(session_->raw(), 0) == SSH_ERROR) {
      co_return false;
    }
    // All of it must leave: nobody else would push what libssh has kept.
    if (left == 0 && (libssh().ssh_get_status(session_->raw()) & SSH_WRITE_PENDING) == 0)
      co_return true;
    co_await session_->activity();
  }
  co_return false;
}

std::string SshChannel::last_words() const {
  std::string words = trouble_;
  if (words.empty() && exit_status_ >= 0)
    words = "it ended with exit code " + std::to_string(exit_status_);
  const std::string said(trim(stderr_tail_));
  if (!said.empty()) words += (words.empty() ? "" : ": ") + said;
  return words;
}

}  // namespace hv::launcher
