// SshSession: libssh over a connected socket, driven by the io_context instead of blocking.
// SPDX-License-Identifier: Apache-2.0
//
// libssh in non-blocking mode answers "again"; then the caller awaits activity() and calls again.
// Several coroutines (one that reads, one that writes) share a session: any libssh call may take
// packets that another one waits for, so the channel's callbacks wake() all of them, and everybody
// looks again for what is theirs. io_context thread only. Owned by shared_ptr: waits in flight keep
// it.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/steady_timer.hpp>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "launcher/spawn/blocking_call.h"
#include "launcher/spawn/ssh/ssh_config.h"
#include "launcher/spawn/ssh/ssh_library.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

class SshSession : public std::enable_shared_from_this<SshSession> {
 public:
  // socket: connected, non-blocking. first_types: host key types to ask for first. Throws
  // Error(kStart).
  SshSession(boost::asio::any_io_executor executor, UniqueFd socket, const SshConfig& config,
             const std::vector<std::string>& first_types);
  ~SshSession();
  SshSession(const SshSession&) = delete;
  SshSession& operator=(const SshSession&) = delete;

  ssh_session raw() { return session_.get(); }
  bool is_closed() const { return closed_; }
  std::string error() const;  // libssh's words for the last failure

  // Repeats a libssh call until it says something else than again, or the session is closed (then:
  // again).
  template <typename Call>
  boost::asio::awaitable<int> until_done(Call call, int again = SSH_AGAIN) {
    int result = call();
    while (result == again && !closed_) {
      co_await activity();
      if (!closed_) result = call();
    }
    co_return result;
  }

  // The same for a call that blocks by itself, each time in a thread of its own. The session is
  // that thread's meanwhile: nobody else may use it. Closed meanwhile: again, at once, and the
  // thread frees the session when it is through. doing: "ask the ssh-agent for a signature". Throws
  // Error(kStart) when there is no thread to be had.
  boost::asio::awaitable<int> until_done_in_thread(std::string doing,
                                                   std::function<int(ssh_session)> call, int again);

  // Returns when the socket can do what libssh waits for, or after wake().
  boost::asio::awaitable<void> activity();
  void wake();
  // Ends the session and frees its channels: nobody may touch those afterwards.
  void close();

 private:
  void configure(const SshConfig& config, const std::vector<std::string>& first_types, int socket);
  void watch(boost::asio::posix::descriptor_base::wait_type what, bool* watching);

  std::shared_ptr<ssh_session_struct> session_;  // shared with the thread of a blocking call
  std::shared_ptr<BlockingCall> in_thread_;      // while it runs
  boost::asio::posix::stream_descriptor ready_;  // a duplicate: libssh owns the socket itself
  boost::asio::steady_timer signal_;             // never expires; cancelled to wake
  bool watching_read_ = false;
  bool watching_write_ = false;
  bool closed_ = false;
};

// Host key: base64, type and "SHA256:..." of the server's; of a connected session.
struct HostKey {
  std::string type, base64, fingerprint;
};
// host: for messages. Throws Error(kStart).
HostKey host_key_of(SshSession& session, const std::string& host);
std::string fingerprint_of(ssh_key key);

}  // namespace hv::launcher
