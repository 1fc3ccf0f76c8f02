// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/mpi/pmi_server.h"

#include <sys/socket.h>

#include <cerrno>
#include <utility>

#include "launcher/agent/mpi/last_messages.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostUnsentPmi = 256 << 10;

}  // namespace

PmiServer::PmiServer(EventLoop& loop, PmiRendezvous rendezvous, Callbacks callbacks)
    : loop_(loop), rendezvous_(std::move(rendezvous)), callbacks_(std::move(callbacks)) {}

PmiServer::~PmiServer() {
  for (const auto& [rank, client] : clients_) loop_.unwatch(client.fd.get());
}

Status PmiServer::connect(std::uint32_t rank, std::uint32_t size, UniqueFd* theirs,
                          RankEnvironment* environment) {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
    return system_status("make a socket for a rank's PMI", errno);
  Client& client = clients_[rank];
  client.fd.reset(ends[0]);
  theirs->reset(ends[1]);
  loop_.watch(client.fd.get(), EPOLLIN,
              [this, rank](std::uint32_t events) { ready(rank, events); });
  environment->set("PMI_FD", std::to_string(theirs->get()));
  environment->set("PMI_RANK", std::to_string(rank));
  environment->set("PMI_SIZE", std::to_string(size));
  // MPICH from 4.3 on uses neither PMI-1 nor PMIx where it finds both and no choice is made.
  environment->set_default("MPIR_CVAR_PMI_VERSION", "1");
  return Status::success();
}

void PmiServer::ready(std::uint32_t rank, std::uint32_t events) {
  const auto found = clients_.find(rank);
  if (found == clients_.end()) return;
  if ((events & EPOLLOUT) && !send(rank, found->second, "")) return hang_up(rank);
  if (events & ~static_cast<std::uint32_t>(EPOLLOUT)) receive(rank);
}

bool PmiServer::receive(std::uint32_t rank) {
  Client& client = clients_.at(rank);
  char bytes[4096];
  const ssize_t got = ::recv(client.fd.get(), bytes, sizeof bytes, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return errno == EINTR;
  if (got > 0) client.unread.append(bytes, static_cast<std::size_t>(got));
  const bool goes_on = got > 0 && answer_lines(rank, client);
  if (!goes_on) hang_up(rank);
  report_barriers();
  return goes_on;
}

bool PmiServer::answer_lines(std::uint32_t rank, Client& client) {
  for (std::size_t end; (end = client.unread.find('\n')) != std::string::npos;) {
    const auto answer = rendezvous_.answer(rank, std::string_view(client.unread).substr(0, end));
    client.unread.erase(0, end + 1);
    if (!answer || !send(rank, client, *answer)) return false;
    if (const auto code = rendezvous_.abort_of(rank)) callbacks_.on_abort(rank, *code);
  }
  return client.unread.size() <= PmiRendezvous::kMostLine;
}

bool PmiServer::send(std::uint32_t rank, Client& client, const std::string& text) {
  client.outgoing += text;
  while (!client.outgoing.empty()) {
    const ssize_t wrote = ::send(client.fd.get(), client.outgoing.data(), client.outgoing.size(),
                                 MSG_DONTWAIT | MSG_NOSIGNAL);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0 && errno != EAGAIN) return false;
    if (wrote < 0) break;
    client.outgoing.erase(0, static_cast<std::size_t>(wrote));
  }
  loop_.watch(client.fd.get(), client.outgoing.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT,
              [this, rank](std::uint32_t events) { ready(rank, events); });
  return client.outgoing.size() <= kMostUnsentPmi;
}

void PmiServer::hang_up(std::uint32_t rank) {
  const auto found = clients_.find(rank);
  if (found == clients_.end()) return;
  loop_.unwatch(found->second.fd.get());
  clients_.erase(found);
}

void PmiServer::report_barriers() {
  for (const wire::FenceIn& fence : rendezvous_.complete()) callbacks_.on_fence(fence);
  callbacks_.on_change();
}

void PmiServer::pass(const wire::FenceOut& out) {
  for (const std::uint32_t rank : rendezvous_.pass(out)) {
    const auto found = clients_.find(rank);
    if (found != clients_.end() && !send(rank, found->second, PmiRendezvous::barrier_answer()))
      hang_up(rank);
  }
  report_barriers();
}

wire::MpiEnd PmiServer::rank_ended(std::uint32_t rank) {
  read_last_messages(
      [&] { return clients_.count(rank) != 0 && receive(rank); });  // such as a finalize
  const wire::MpiEnd end = rendezvous_.note_end(rank);
  report_barriers();
  return end;
}

}  // namespace hv::launcher
