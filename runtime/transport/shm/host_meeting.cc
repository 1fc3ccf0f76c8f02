// SPDX-License-Identifier: Apache-2.0
#include "runtime/transport/shm/host_meeting.h"

#include <poll.h>
#include <sys/socket.h>
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

// Whoever has said a whole hello may hold up the others for no longer than this.
constexpr std::chrono::milliseconds kOneHandshake{5000};
constexpr const char* kRefused = "refused a connection to this host's shared memory: ";

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

// For any of them. A signal's handler may run meanwhile; it neither ends nor lengthens the wait.
Wait await_readable(std::vector<pollfd>& entries, TimePoint deadline) {
  for (;;) {
    if (now() > deadline) return Wait::kTimedOut;
    const timespec left = time_left(deadline);
    const int ready = ::ppoll(entries.data(), entries.size(), &left, nullptr);
    if (ready > 0) return Wait::kReadable;
    if (ready < 0 && errno != EINTR) return Wait::kFailed;
  }
}

Wait await_readable(int fd, TimePoint deadline) {
  std::vector<pollfd> entries{{fd, POLLIN, 0}};
  return await_readable(entries, deadline);
}

std::chrono::milliseconds milliseconds_left(TimePoint deadline) {
  return std::chrono::ceil<std::chrono::milliseconds>(deadline - now());
}

// A rank's hello comes in one piece: with less of it nobody is waited for.
bool has_whole_hello(int socket) {
  Hello hello;
  return ::recv(socket, &hello, sizeof hello, MSG_PEEK | MSG_DONTWAIT) == sizeof hello;
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
  std::vector<Guest> guests;
  while (watched->size() < members.size())
    if (Status status = hear(members, memfd.get(), deadline, &guests, watched); !status.ok())
      return status;
  listener_.reset();
  return Status::success();
}

// Waits for a word or a connection. Whoever connects and says nothing holds up nobody.
Status HostMeeting::hear(const std::vector<int>& members, int memfd, TimePoint deadline,
                         std::vector<Guest>* guests, std::vector<WatchedPeer>* watched) {
  const auto doing = [&] {
    return "share memory on this host: nothing heard from " + missing_ranks(members, *watched);
  };
  std::vector<pollfd> entries{{listener_.get(), POLLIN, 0}};
  for (const Guest& guest : *guests) entries.push_back({guest.socket.get(), POLLIN, 0});
  const Wait heard = await_readable(entries, deadline);
  if (heard == Wait::kFailed) return system_status(doing(), errno);
  if (heard == Wait::kTimedOut) return {StatusCode::kSystem, doing()};
  std::vector<Guest> silent;
  for (std::size_t i = 0; i < guests->size(); ++i) {
    if (entries[i + 1].revents == 0 || now() >= deadline) {
      silent.push_back(std::move((*guests)[i]));
    } else {
      admit(members, memfd, deadline, std::move((*guests)[i]), watched);
    }
  }
  *guests = std::move(silent);
  return entries[0].revents == 0 ? Status::success() : take_connection(guests);
}

Status HostMeeting::take_connection(std::vector<Guest>* guests) {
  UniqueFd socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC));
  if (!socket) {
    if (errno != EMFILE && errno != ENFILE && errno != ENOBUFS && errno != ENOMEM)
      return Status::success();
    if (!guests->empty()) {  // who has been silent longest makes room
      HV_LOG(kWarn, "transport") << kRefused << "too many that say nothing";
      guests->erase(guests->begin());
      return Status::success();
    }
    return system_status("share memory on this host: take a rank's connection", errno);
  }
  std::int32_t pid = 0;
  if (is_same_user(socket.get(), &pid)) {
    guests->push_back({std::move(socket), pid});
  } else {
    HV_LOG(kWarn, "transport") << kRefused << "another user connected";
  }
  return Status::success();
}

// Strangers are refused with a line in the log.
void HostMeeting::admit(const std::vector<int>& members, int memfd, TimePoint deadline, Guest guest,
                        std::vector<WatchedPeer>* watched) {
  Hello expected, hello;
  expected.to = static_cast<std::uint32_t>(terms_.rank);
  expected.epoch = static_cast<std::uint32_t>(terms_.epoch);
  expected.use = kUseHostMemory;
  Status proven =
      has_whole_hello(guest.socket.get())
          ? prove_as_server(guest.socket.get(), terms_.key, terms_.job_id, expected, &hello,
                            std::min(kOneHandshake, milliseconds_left(deadline)))
          : Status{StatusCode::kSystem, "it left, or spoke as no rank does"};
  const int from = static_cast<int>(hello.from);
  if (proven.ok() && std::find(members.begin(), members.end(), from) == members.end())
    proven = {StatusCode::kSystem, "rank " + std::to_string(from) + " is not on this host"};
  if (proven.ok()) proven = send_descriptor(guest.socket.get(), memfd);
  if (!proven.ok()) {
    HV_LOG(kWarn, "transport") << kRefused << proven.message;
    return;
  }
  watched->push_back({from, pidfd_of_other(guest.pid), ForkGuardedFd(std::move(guest.socket))});
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
