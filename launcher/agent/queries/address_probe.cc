// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/queries/address_probe.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "launcher/agent/probe_listener.h"
#include "src/base/bounded_seconds.h"
#include "src/base/clock.h"
#include "src/net/socket.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostAtOnce = 256;  // the usual limit of descriptors is 1,024
constexpr std::size_t kAnswerBytes = kNonceBytes + kProofBytes;

}  // namespace

AddressProbe::AddressProbe(EventLoop& loop, const JobKey& key, std::string job_id,
                           const wire::ProbeRequest& request,
                           std::function<void(wire::ProbeReply)> done, OnProven on_proven)
    : loop_(loop),
      key_(key),
      job_id_(std::move(job_id)),
      done_(std::move(done)),
      on_proven_(std::move(on_proven)),
      request_(request) {
  for (const wire::ProbeTarget& target : request_.targets)
    reply_.results.push_back({target.host_id, {}, {}});
  const Duration time =
      std::min<Duration>(bounded_seconds(request.timeout_s), std::chrono::seconds(60));
  deadline_ = loop_.call_after(time, [this] { finish(); });
  add_attempts(request_);
  start_more();
}

AddressProbe::~AddressProbe() {
  loop_.cancel(deadline_);
  for (const auto& [fd, attempt] : open_) loop_.unwatch(fd);
}

void AddressProbe::add_attempts(const wire::ProbeRequest& request) {
  for (std::size_t target = 0; target < request.targets.size(); ++target) {
    const wire::ProbeTarget& host = request.targets[target];
    if (host.addresses.empty())
      reply_.results[target].reason = "that host has no address but its own";
    for (std::size_t address = 0; address < host.addresses.size(); ++address) {
      const auto where =
          SocketAddress::parse(host.addresses[address], static_cast<std::uint16_t>(host.port));
      if (!where) continue;
      Attempt attempt;
      attempt.target = target;
      attempt.address = address;
      attempt.where = *where;
      waiting_.push_back(std::move(attempt));
    }
  }
}

void AddressProbe::start_more() {
  while (open_.size() < kMostAtOnce && !waiting_.empty()) {
    Attempt attempt = std::move(waiting_.front());
    waiting_.pop_front();
    if (const Status status = start_connect(attempt.where, &attempt.fd); !status.ok()) {
      fail(attempt, status.message);
      continue;
    }
    const int fd = attempt.fd.get();
    loop_.watch(fd, EPOLLOUT, [this, fd](std::uint32_t) { ready(fd); });
    open_.emplace(fd, std::move(attempt));
  }
  finish_if_done();
}

void AddressProbe::ready(int fd) {
  Attempt& attempt = open_.at(fd);
  if (!attempt.is_connected) return send_nonce(attempt);
  char bytes[kAnswerBytes];
  const ssize_t got = ::recv(fd, bytes, kAnswerBytes - attempt.received.size(), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    fail(attempt,
         "connect to " + attempt.where.text() + ": who answers there is no agent of this job");
    return close(fd);
  }
  attempt.received.append(bytes, static_cast<std::size_t>(got));
  if (attempt.received.size() < kAnswerBytes) return;
  check_answer(attempt);
  if (attempt.fd) return close(fd);
  open_.erase(fd);  // the callback owns the socket now
  start_more();
}

void AddressProbe::send_nonce(Attempt& attempt) {
  const int fd = attempt.fd.get();
  Status status = finish_connect(fd, attempt.where);
  attempt.nonce = random_nonce();
  if (status.ok() &&
      ::send(fd, attempt.nonce.data(), attempt.nonce.size(), MSG_DONTWAIT | MSG_NOSIGNAL) < 0) {
    status = system_status("connect to " + attempt.where.text(), errno);
  }
  if (!status.ok()) {
    fail(attempt, status.message);
    return close(fd);
  }
  attempt.is_connected = true;
  loop_.watch(fd, EPOLLIN, [this, fd](std::uint32_t) { ready(fd); });
}

void AddressProbe::check_answer(Attempt& attempt) {
  Nonce server;
  Proof proof;
  std::copy_n(attempt.received.begin(), server.size(), server.begin());
  std::copy_n(attempt.received.begin() + kNonceBytes, proof.size(), proof.begin());
  wire::ProbeResult& result = reply_.results[attempt.target];
  const std::string purpose = probe_purpose(job_id_, result.host_id);
  if (equal_proofs(proof, server_proof(key_, purpose, attempt.nonce, server))) {
    // The path is proven; our proof can only be lost if the other agent has ended.
    const Proof ours = client_proof(key_, purpose, attempt.nonce, server);
    (void)::send(attempt.fd.get(), ours.data(), ours.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    result.reached.push_back(request_.targets[attempt.target].addresses[attempt.address]);
    if (!on_proven_) return;
    loop_.unwatch(attempt.fd.get());
    on_proven_(result.host_id, std::move(attempt.fd));
  } else {
    fail(attempt, "connect to " + attempt.where.text() +
                      ": another host, or no agent of this job, answers there");
  }
}

// Reports the first reason for the host, unless one of its addresses answers.
void AddressProbe::fail(Attempt& attempt, const std::string& reason) {
  std::string& reported = reply_.results[attempt.target].reason;
  if (reported.empty()) reported = reason;
}

void AddressProbe::close(int fd) {
  loop_.unwatch(fd);
  open_.erase(fd);
  start_more();
}

void AddressProbe::finish_if_done() {
  if (!open_.empty() || !waiting_.empty()) return;
  loop_.cancel(deadline_);
  deadline_ = loop_.call_after(Duration::zero(), [this] { finish(); });
}

void AddressProbe::order_results() {
  for (std::size_t target = 0; target < reply_.results.size(); ++target) {
    wire::ProbeResult& result = reply_.results[target];
    // In the order of that host's own list, not of the answers.
    std::vector<std::string> ordered;
    for (const std::string& address : request_.targets[target].addresses) {
      if (std::find(result.reached.begin(), result.reached.end(), address) != result.reached.end())
        ordered.push_back(address);
    }
    result.reached = std::move(ordered);
    if (!result.reached.empty()) result.reason.clear();
  }
}

void AddressProbe::finish() {
  for (auto& [fd, attempt] : open_) {
    loop_.unwatch(fd);
    fail(attempt, "connect to " + attempt.where.text() + ": no answer in time");
  }
  open_.clear();
  for (Attempt& attempt : waiting_)
    fail(attempt, "connect to " + attempt.where.text() + ": no time was left to try");
  waiting_.clear();
  order_results();
  // done_ may destroy this probe.
  const auto done = std::move(done_);
  done(std::move(reply_));
}

}  // namespace hv::launcher
