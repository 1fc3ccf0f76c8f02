// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/host_meeting.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "runtime/transport/handshake.h"
#include "runtime/transport/shm/memfd_source.h"
#include "src/base/log.h"
#include "src/net/socket.h"

namespace hv::runtime {
namespace {

// One stranger on the socket may hold up the others for no longer than this.
constexpr std::chrono::milliseconds kOneHandshake{5000};

bool is_same_user(int socket, std::int32_t* pid) {
  std::uint32_t uid = 0;
  return peer_user(socket, &uid, pid).ok() && uid == ::geteuid();
}

UniqueFd open_pidfd(std::int32_t pid) {
  // 0: the peer lives in a PID namespace that this one cannot see.
  if (pid <= 0) return {};
  return UniqueFd(
      static_cast<int>(::syscall(SYS_pidfd_open, pid, 0)));  // close-on-exec by definition
}

// Ranks as threads of one process have nobody to watch but themselves.
ForkGuardedFd pidfd_of_other(std::int32_t pid) {
  return ForkGuardedFd(pid == ::getpid() ? UniqueFd() : open_pidfd(pid));
}

enum class Wait { kReadable, kTimedOut, kFailed };  // kFailed: errno tells

// A signal's handler may run meanwhile; it neither ends nor lengthens the wait.
Wait await_readable(int fd, TimePoint deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now()).count();
    if (left < 0) return Wait::kTimedOut;
    pollfd entry{fd, POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long long>(left + 1, 1 << 30)));
    if (ready > 0) return Wait::kReadable;
    if (ready < 0 && errno != EINTR) return Wait::kFailed;
  }
}

std::string missing_ranks(const std::vector<int>& members,
                          const std::vector<WatchedPeer>& present) {
  std::string text;
  for (const int member : members) {
    const bool there = std::any_of(present.begin(), present.end(),
                                   [&](const auto& peer) { return peer.rank == member; });
    if (!there) text += (text.empty() ? "rank " : ", ") + std::to_string(member);
  }
  return text;
}

}  // namespace

Status HostMeeting::listen(std::string* name) {
  *name = "@hvrun-ranks-" + random_hex(16);
  return listen_unix(*name, &listener_);
}

bool HostMeeting::reach(const std::string& name) {
  UniqueFd socket;
  std::int32_t pid = 0;
  if (!connect_unix(name, &socket).ok() || !is_same_user(socket.get(), &pid)) return false;
  leader_ = std::move(socket);
  return true;
}

Status HostMeeting::lead(const std::vector<int>& members, const HostGeometry& geometry,
                         MappedMemory* memory, std::vector<WatchedPeer>* watched) {
  UniqueFd memfd;
  if (Status status = create_memfd(geometry.total_bytes(), &memfd); !status.ok()) return status;
  if (Status status = map_memfd(memfd.get(), geometry.total_bytes(), memory); !status.ok())
    return status;
  const TimePoint deadline = now() + terms_.timeout;
  while (watched->size() < members.size())
    if (Status status = admit_one(members, memfd.get(), deadline, watched); !status.ok())
      return status;
  listener_.reset();
  return Status::success();
}

// Takes one connection. Strangers are refused with a line in the log; only time makes this fail.
Status HostMeeting::admit_one(const std::vector<int>& members, int memfd, TimePoint deadline,
                              std::vector<WatchedPeer>* watched) {
  const std::string doing =
      "share memory on this host: nothing heard from " + missing_ranks(members, *watched);
  const Wait heard = await_readable(listener_.get(), deadline);
  if (heard == Wait::kFailed) return system_status(doing, errno);
  if (heard == Wait::kTimedOut) return {StatusCode::kSystem, doing};
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
      return Status::success();
    return system_status("share memory on this host: take a rank's connection", errno);
  }
  std::int32_t pid = 0;
  Hello expected, hello;
  expected.to = static_cast<std::uint32_t>(terms_.rank);
  expected.epoch = static_cast<std::uint32_t>(terms_.epoch);
  expected.use = kUseHostMemory;
  Status proven = is_same_user(socket.get(), &pid)
                      ? prove_as_server(socket.get(), terms_.key, terms_.job_id, expected, &hello,
                                        kOneHandshake)
                      : Status{StatusCode::kSystem, "another user connected"};
  const int from = static_cast<int>(hello.from);
  if (proven.ok() && std::find(members.begin(), members.end(), from) == members.end())
    proven = {StatusCode::kSystem, "rank " + std::to_string(from) + " is not on this host"};
  if (proven.ok()) proven = send_descriptor(socket.get(), memfd);
  if (!proven.ok()) {
    HV_LOG(kWarn, "transport") << "refused a connection to this host's shared memory: "
                               << proven.message;
    return Status::success();
  }
  watched->push_back({from, pidfd_of_other(pid), ForkGuardedFd(std::move(socket))});
  return Status::success();
}

Status HostMeeting::follow(int leader, const HostGeometry& geometry, MappedMemory* memory,
                           std::vector<WatchedPeer>* watched) {
  Hello hello;
  hello.from = static_cast<std::uint32_t>(terms_.rank);
  hello.to = static_cast<std::uint32_t>(leader);
  hello.epoch = static_cast<std::uint32_t>(terms_.epoch);
  hello.use = kUseHostMemory;
  const TimePoint deadline = now() + terms_.timeout;
  const std::string doing =
      "share memory with rank " + std::to_string(leader) + ", the first of this host: ";
  Status status = prove_as_client(leader_.get(), terms_.key, terms_.job_id, hello, terms_.timeout);
  if (!status.ok()) return {status.code, doing + status.message};
  UniqueFd memfd;
  const Wait handed = await_readable(leader_.get(), deadline);
  if (handed == Wait::kFailed) return system_status(doing + "wait for it", errno);
  if (handed == Wait::kTimedOut)
    return {StatusCode::kSystem, doing + "it handed nothing over in time"};
  if (status = receive_descriptor(leader_.get(), &memfd); !status.ok())
    return {status.code, doing + status.message};
  std::int32_t pid = 0;
  is_same_user(leader_.get(), &pid);
  watched->push_back({leader, pidfd_of_other(pid), ForkGuardedFd(std::move(leader_))});
  return map_memfd(memfd.get(), geometry.total_bytes(), memory);
}

}  // namespace hv::runtime
