// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/probe_listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "launcher/probes/pair_measure.h"
#include "src/net/socket.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostGuests = 256;
constexpr auto kTimeForGuest = std::chrono::seconds(10);
constexpr std::size_t kServedAtOnce = 256 << 10;

}  // namespace

std::string probe_purpose(const std::string& job_id, std::uint32_t host_id) {
  return "probe " + job_id + " " + std::to_string(host_id);
}

ProbeListener::~ProbeListener() {
  for (const auto& [fd, guest] : guests_) {
    loop_.unwatch(fd);
    loop_.cancel(guest.deadline);
  }
  if (listener_) loop_.unwatch(listener_.get());
}

Status ProbeListener::listen(const PortRange& range) {
  const auto before_last = static_cast<std::uint32_t>(std::max(range.count() - 2, 0));
  if (Status status = listen_tcp_in(range, before_last, &listener_, &port_); !status.ok())
    return status;
  await_guests();
  return Status::success();
}

void ProbeListener::await_guests() {
  is_accepting_ = true;
  loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept(); });
}

// At the limit of guests the one that has been silent for longest gives way, unless it has proven
// that it holds the key; if all have, further connections wait in the kernel's backlog.
void ProbeListener::accept() {
  while (guests_.size() < kMostGuests || longest_silent()) {
    UniqueFd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    if (guests_.size() == kMostGuests) drop(*longest_silent());
    const int number = fd.get();
    loop_.watch(number, EPOLLIN, [this, number](std::uint32_t) { receive(number); });
    const auto deadline = loop_.call_after(kTimeForGuest, [this, number] { drop(number); });
    Guest& guest = guests_[number];
    guest.fd = std::move(fd);
    guest.deadline = deadline;
    guest.heard = now();
  }
  is_accepting_ = false;
  loop_.unwatch(listener_.get());
}

// None: every guest has proven that it holds the key.
std::optional<int> ProbeListener::longest_silent() const {
  const auto silent =
      std::min_element(guests_.begin(), guests_.end(), [](const auto& one, const auto& other) {
        return std::pair(one.second.is_proven, one.second.heard) <
               std::pair(other.second.is_proven, other.second.heard);
      });
  if (silent == guests_.end() || silent->second.is_proven) return std::nullopt;
  return silent->first;
}

// Never reads more than the fixed size of the handshake's step.
void ProbeListener::receive(int fd) {
  static_assert(kNonceBytes == kProofBytes);
  Guest& guest = guests_.at(fd);
  if (guest.is_proven) return serve(fd, guest);
  char bytes[kNonceBytes];
  const ssize_t got = ::recv(fd, bytes, sizeof bytes - guest.received.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return drop(fd);
  guest.heard = now();
  guest.received.append(bytes, static_cast<std::size_t>(got));
  if (guest.received.size() < kNonceBytes) return;
  if (guest.is_answered) return judge(fd, guest);
  answer(fd, guest);
}

void ProbeListener::answer(int fd, Guest& guest) {
  Nonce client;
  std::copy_n(guest.received.begin(), client.size(), client.begin());
  const Nonce server = random_nonce();
  const Proof proof = server_proof(key_, purpose_, client, server);
  std::string answer(server.begin(), server.end());
  answer.append(proof.begin(), proof.end());
  // 64 bytes fit into any fresh connection's buffer; if they do not, the guest times out.
  if (::send(fd, answer.data(), answer.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) return drop(fd);
  guest.expected = client_proof(key_, purpose_, client, server);
  guest.received.clear();
  guest.is_answered = true;
}

void ProbeListener::judge(int fd, Guest& guest) {
  Proof proof;
  std::copy_n(guest.received.begin(), proof.size(), proof.begin());
  guest.is_proven = equal_proofs(proof, guest.expected);
  ++(guest.is_proven ? proven_ : refused_);
  if (!guest.is_proven) drop(fd);
}

// Serves a path measurement: echoes its first bytes, and answers the end of the others with their
// number.
void ProbeListener::serve(int fd, Guest& guest) {
  static std::vector<char> bytes(kServedAtOnce);  // write-only: its content is never read
  const std::size_t echoed = kEchoedBytes - std::min<std::uint64_t>(guest.counted, kEchoedBytes);
  const ssize_t got = ::recv(fd, bytes.data(), echoed > 0 ? echoed : bytes.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    if (got == 0 && guest.counted > kEchoedBytes) {
      const std::uint64_t arrived = guest.counted - kEchoedBytes;
      (void)::send(fd, &arrived, sizeof arrived, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return drop(fd);
  }
  guest.counted += static_cast<std::uint64_t>(got);
  if (echoed > 0 &&
      ::send(fd, bytes.data(), static_cast<std::size_t>(got), MSG_DONTWAIT | MSG_NOSIGNAL) < 0)
    drop(fd);
}

void ProbeListener::drop(int fd) {
  const auto found = guests_.find(fd);
  if (found == guests_.end()) return;
  loop_.unwatch(fd);
  loop_.cancel(found->second.deadline);
  guests_.erase(found);
  if (!is_accepting_) await_guests();
}

}  // namespace hv::launcher
