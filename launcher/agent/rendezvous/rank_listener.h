// RankListener: the Unix socket at which the ranks of this host connect to their agent.
// SPDX-License-Identifier: Apache-2.0
//
// Only processes of this user, and of root, get in (peer credentials); others are hung up on.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "launcher/agent/event_loop.h"
#include "src/base/status.h"
#include "src/base/unique_fd.h"

namespace hv::launcher {

// In the abstract namespace.
std::string rank_socket_name(const std::string& job_id, const std::string& host_id);

class RankListener {
 public:
  using OnConnection = std::function<void(UniqueFd socket, std::int32_t pid)>;

  RankListener(EventLoop& loop, OnConnection on_connection)
      : loop_(loop), on_connection_(std::move(on_connection)) {}
  ~RankListener();
  RankListener(const RankListener&) = delete;
  RankListener& operator=(const RankListener&) = delete;

  // On an abstract name; where that is refused, on a path in a directory that only this user can
  // enter.
  Status listen(const std::string& job_id, std::uint32_t host_id);
  const std::string& name() const { return name_; }

 private:
  Status listen_in_directory();
  void accept();

  EventLoop& loop_;
  const OnConnection on_connection_;
  std::string name_;
  std::string directory_;  // holds the path, and is removed at the end; empty: an abstract name
  UniqueFd socket_;
};

}  // namespace hv::launcher
