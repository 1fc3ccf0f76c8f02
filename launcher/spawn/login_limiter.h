// LoginLimiter: at most 8 logins at once through one sshd, which refuses more than a few
// (MaxStartups of sshd_config(5), 10:30:100 by default).
// SPDX-License-Identifier: Apache-2.0
//
// sshd counts connections that have not authenticated yet, so a login ends with that. A login that
// takes longer than kLongestLogin no longer counts: it waits for a host behind the gate, and must
// not keep the others waiting. Logins are let in in the order in which they ask. io_context thread
// only.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <string>

#include "launcher/spawn/start_deadline.h"

namespace hv::launcher {

class LoginLimiter {
 public:
  static constexpr int kMostAtOnce = 8;
  static constexpr Duration kLongestLogin = std::chrono::seconds(5);

  explicit LoginLimiter(Duration longest_login = kLongestLogin) : longest_login_(longest_login) {}

  // A login that counts until release(), its destruction, or longest_login.
  class Permit {
   public:
    virtual ~Permit() = default;
    virtual void release() = 0;  // again: no effect
  };

  // gate: the sshd that the connection meets first: "gateway", "10.0.0.1:22". host: for messages.
  // Throws Error(kTimeout) at the deadline.
  boost::asio::awaitable<std::shared_ptr<Permit>> acquire(std::string gate, std::string host,
                                                          StartDeadline& deadline);

 private:
  struct Gate;  // shared with its permits
  const Duration longest_login_;
  std::map<std::string, std::shared_ptr<Gate>> gates_;
};

}  // namespace hv::launcher
