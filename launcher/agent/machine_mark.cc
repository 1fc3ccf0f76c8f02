// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/machine_mark.h"

#include <unistd.h>

#include <fstream>

#include "launcher/agent/rendezvous/rank_listener.h"
#include "src/base/text.h"
#include "src/net/socket.h"

namespace hv::launcher {
namespace {

enum class Holder { kOwn, kOther, kUnknown };

// Every user sees these names and can take one, so a mark of another user does not count. No agent
// accepts these connections, so the backlog is full at some time.
Holder holder_of(const std::string& name) {
  UniqueFd socket;
  std::uint32_t user = 0;
  std::int32_t pid = 0;
  bool is_full = false;
  if (!try_connect_unix(name, &socket, &is_full).ok())
    return is_full ? Holder::kUnknown : Holder::kOther;
  const bool is_own = peer_user(socket.get(), &user, &pid).ok() && user == ::geteuid();
  return is_own ? Holder::kOwn : Holder::kOther;
}

}  // namespace

std::optional<std::uint32_t> MachineMark::claim(const std::string& job_id, std::uint32_t host_id) {
  const std::string name = "@hvrun-" + job_id + "-machine";
  if (listen_unix(name, &socket_).ok()) return std::nullopt;
  const Holder holder = holder_of(name);
  if (holder == Holder::kOther) return std::nullopt;
  std::ifstream sockets("/proc/net/unix");
  const auto other = other_host_here(sockets, job_id, host_id);
  return other || holder == Holder::kUnknown ? other : kUnknownHost;
}

std::optional<std::uint32_t> other_host_here(std::istream& sockets, const std::string& job_id,
                                             std::uint32_t own_id) {
  const std::string beginning = rank_socket_name(job_id, "");
  std::optional<std::uint32_t> first;
  for (std::string line; std::getline(sockets, line);) {
    const std::size_t at = line.rfind(' ');
    if (at == std::string::npos || line.compare(at + 1, beginning.size(), beginning) != 0) continue;
    const auto id = parse_integer(std::string_view(line).substr(at + 1 + beginning.size()));
    if (!id || *id < 0 || *id >= kUnknownHost || *id == own_id) continue;
    const auto other = static_cast<std::uint32_t>(*id);
    if (!first || other < *first) first = other;
  }
  return first;
}

}  // namespace hv::launcher
