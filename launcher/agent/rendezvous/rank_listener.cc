// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/rendezvous/rank_listener.h"

#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <utility>

#include "src/net/socket.h"

namespace hv::launcher {

std::string rank_socket_name(const std::string& job_id, const std::string& host_id) {
  return "@hvrun-" + job_id + "-" + host_id;
}

RankListener::~RankListener() {
  if (socket_) loop_.unwatch(socket_.get());
  if (directory_.empty()) return;
  ::unlink(name_.c_str());
  ::rmdir(directory_.c_str());
}

Status RankListener::listen(const std::string& job_id, std::uint32_t host_id) {
  name_ = rank_socket_name(job_id, std::to_string(host_id));
  if (!listen_unix(name_, &socket_).ok()) {
    if (Status status = listen_in_directory(); !status.ok()) return status;
  }
  loop_.watch(socket_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
  return Status::success();
}

Status RankListener::listen_in_directory() {
  char directory[] = "/tmp/hvrun-XXXXXX";  // mkdtemp makes it 0700
  if (!::mkdtemp(directory))
    return system_status("make a folder for the ranks' socket in /tmp", errno);
  directory_ = directory;
  name_ = directory_ + "/agent";
  return listen_unix(name_, &socket_);
}

void RankListener::accept() {
  for (;;) {
    UniqueFd fd(::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    std::uint32_t user = 0;
    std::int32_t pid = 0;
    if (!peer_user(fd.get(), &user, &pid).ok() || (user != ::geteuid() && user != 0)) continue;
    on_connection_(std::move(fd), pid);
  }
}

}  // namespace hv::launcher
