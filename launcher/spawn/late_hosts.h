// LateHosts: hosts that are just coming up, and logins that a busy sshd refuses, are tried again
// until --start-timeout.
// SPDX-License-Identifier: Apache-2.0
//
//   attempt -> there
//      |        ^
//      v        |
//   NotThereYet, LoginRefused -> pause: 0.2 s, doubled each time up to 3 s -> attempt ...
//
// A pause is 50 to 100 % of that, at random: many that were refused at once do not come back at
// once.
//
// Whoever names hosts says whether they may be coming up (HostReach); a pod that kubectl reaches
// always may. A refused login (LoginRefused) says that the host is up, so it is tried again anyway.
// One LateHosts serves all hosts of a job, so that those that are awaited are named together, each
// once: one that is found missing later is told later. A host that was there once is not awaited
// again: it has gone. io_context thread only.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <functional>
#include <memory>
#include <random>
#include <set>
#include <string>

#include "launcher/spawn/spawner.h"
#include "launcher/spawn/start_deadline.h"

namespace hv::launcher {

// What may be otherwise in a moment where the host just comes up: no address yet, nobody who
// listens. Elsewhere it is an Error like any other.
class NotThereYet : public Error {
 public:
  explicit NotThereYet(const Error& error) : Error(error) {}
};

// An sshd closed the connection before the login: it has too many of them at once.
class LoginRefused : public Error {
 public:
  explicit LoginRefused(const Error& error) : Error(error) {}
};

class LateHosts {
 public:
  using Attempt = std::function<boost::asio::awaitable<std::unique_ptr<AgentChannel>>()>;

  // What attempt, which must outlive the wait, gives the first time that it throws neither
  // LoginRefused nor, with may_come_late, NotThereYet. Throws Error(kTimeout), with the last
  // reason, at the deadline.
  boost::asio::awaitable<std::unique_ptr<AgentChannel>> start_when_there(const std::string& host,
                                                                         bool may_come_late,
                                                                         StartDeadline& deadline,
                                                                         const Attempt& attempt);

 private:
  void await_host(const boost::asio::any_io_executor& executor, const std::string& host,
                  const Error& reason);

  struct Awaited;  // shared with the timer that tells of them
  std::shared_ptr<Awaited> awaited_;
  std::set<std::string> seen_;
  std::minstd_rand chance_{std::random_device{}()};
};

}  // namespace hv::launcher
