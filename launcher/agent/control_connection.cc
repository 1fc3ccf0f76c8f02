// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/control_connection.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <optional>
#include <utility>

#include "src/base/text.h"
#include "src/net/socket.h"
#include "src/wire/wipe.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostAddresses = 64;

std::optional<SocketAddress> parse_address(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = parse_integer(text.substr(colon + 1));
  std::string_view ip = text.substr(0, colon);
  if (ip.size() > 2 && ip.front() == '[' && ip.back() == ']') ip = ip.substr(1, ip.size() - 2);
  if (!port || *port < 1 || *port > 65535) return std::nullopt;
  return SocketAddress::parse(ip, static_cast<std::uint16_t>(*port));
}

// Delays after the gate has closed the connection: 0.5 to 8 s, half of it random.
constexpr auto kFirstPause = std::chrono::milliseconds(500);
constexpr int kMostAttempts = 6;

// A fresh connection's buffer holds the greeting and the proof.
constexpr auto kTimeToSend = std::chrono::seconds(1);
// A peer whose host or network is gone is noticed after one to two minutes; the kernel answers for
// a stopped process.
constexpr int kKeepaliveIdle_s = 30, kKeepaliveInterval_s = 10, kKeepaliveProbes = 6;

// Limits a wait of poll().
int poll_timeout(TimePoint deadline) {
  constexpr std::int64_t kLongest = 60'000;
  return static_cast<int>(std::clamp<std::int64_t>(time_until(deadline).count() + 1, 0, kLongest));
}

void keep_alive(int socket) {
  const int on = 1;
  ::setsockopt(socket, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPIDLE, &kKeepaliveIdle_s, sizeof(int));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPINTVL, &kKeepaliveInterval_s, sizeof(int));
  ::setsockopt(socket, IPPROTO_TCP, TCP_KEEPCNT, &kKeepaliveProbes, sizeof(int));
}

// The handshake of agent_greeting.h with one address.
class Attempt {
 public:
  Attempt(const SocketAddress& address, UniqueFd socket, const std::string& agent)
      : address_(address), socket_(std::move(socket)), greeting_{agent, random_nonce()} {}

  pollfd wait() const {
    return {socket_.get(), static_cast<short>(is_connected_ ? POLLIN : POLLOUT), 0};
  }
  const SocketAddress& address() const { return address_; }
  bool is_connected() const { return is_connected_; }
  // The peer has closed the connection before its proof.
  bool was_closed() const { return was_closed_; }
  bool has_answer() const { return answer_.size() == kAnswerBytes; }

  // After poll() has found it ready. A failure ends the attempt.
  Status advance() { return is_connected_ ? receive() : greet(); }
  // With the whole answer: checks it, and sends the proof.
  Status prove(const JobKey& key, ControlConnection* connection) {
    const auto hvrun = check_answer(key, greeting_, answer_);
    if (!hvrun) return {StatusCode::kSystem, "who answers there is not the hvrun of this job"};
    if (Status status =
            send_all(socket_.get(), hvrun->proof.data(), hvrun->proof.size(), kTimeToSend);
        !status.ok())
      return status;
    connection->keys = control_keys(key, greeting_.nonce, hvrun->nonce);
    connection->socket = std::move(socket_);
    return Status::success();
  }

 private:
  Status greet() {
    if (Status status = finish_connect(socket_.get(), address_); !status.ok()) return status;
    is_connected_ = true;
    keep_alive(socket_.get());
    const std::string bytes = encode_greeting(greeting_);
    Status status = send_all(socket_.get(), bytes.data(), bytes.size(), kTimeToSend);
    was_closed_ = !status.ok();
    return status;
  }
  Status receive() {
    char bytes[kAnswerBytes];
    const ssize_t got = ::recv(socket_.get(), bytes, kAnswerBytes - answer_.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return Status::success();
    if (got > 0) {
      answer_.append(bytes, static_cast<std::size_t>(got));
      return Status::success();
    }
    was_closed_ = true;
    if (got < 0) return system_status("read the answer", errno);
    return {StatusCode::kSystem, "it closed the connection"};
  }

  SocketAddress address_;
  UniqueFd socket_;
  AgentGreeting greeting_;
  std::string answer_;
  bool is_connected_ = false;
  bool was_closed_ = false;
};

// Whether hvrun may still live, and until when the agent waits.
class ConnectLimit {
 public:
  explicit ConnectLimit(const ConnectWait& wait) : wait_(wait), end_(now() + wait.to_connect) {}

  bool may_hvrun_live() const { return life_ >= 0; }
  pollfd life() const { return {life_, POLLIN, 0}; }
  // Nothing comes any more but its end.
  void check_life() {
    char ignored[256];
    const ssize_t got = ::read(life_, ignored, sizeof ignored);
    if (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR))) return;
    life_ = -1;
  }
  // is_connected: an address has accepted a connection.
  TimePoint end(bool is_connected) const {
    return is_connected && may_hvrun_live() ? TimePoint::max() : end_;
  }
  // Before all addresses are tried again.
  void start_anew() {
    if (may_hvrun_live()) end_ = now() + wait_.to_connect;
  }

 private:
  const ConnectWait wait_;
  int life_ = wait_.life;
  TimePoint end_;
};

}  // namespace

std::vector<SocketAddress> parse_addresses(const std::string& text) {
  std::vector<SocketAddress> addresses;
  for (const std::string& word : split(text, ',')) {
    const auto address = parse_address(word);
    if (!address || addresses.size() == kMostAddresses) return {};
    addresses.push_back(*address);
  }
  return addresses;
}

Status read_key(int fd, TimePoint deadline, JobKey* key) {
  const std::string doing = "read the key from standard input";
  std::string line(2 * JobKey::kBytes + 1, '\0');
  std::size_t size = 0;
  Status status;
  while (status.ok() && size < line.size()) {
    pollfd wait{fd, POLLIN, 0};
    const int ready = ::poll(&wait, 1, poll_timeout(deadline));
    const ssize_t got = ready > 0 ? ::read(fd, line.data() + size, line.size() - size) : ready;
    const int error = errno;
    if (got > 0) {
      size += static_cast<std::size_t>(got);
    } else if (ready == 0) {
      if (now() >= deadline) status = {StatusCode::kSystem, doing + ": nothing came in time"};
    } else if (got == 0) {
      status = {StatusCode::kSystem, doing + ": it ended"};
    } else if (error != EINTR && error != EAGAIN) {
      status = system_status(doing, error);
    }
  }
  const bool is_key =
      status.ok() && line.back() == '\n' && parse_key({line.data(), line.size() - 1}, key);
  wipe(&line);
  if (status.ok() && !is_key) status = {StatusCode::kSystem, doing + ": it is none"};
  return status;
}

namespace {

// One try of all addresses at once.
class Round {
 public:
  Round(const std::vector<SocketAddress>& addresses, const std::string& agent) {
    for (const SocketAddress& address : addresses) {
      UniqueFd socket;
      const Status status = start_connect(address, &socket);
      if (status.ok())
        attempts_.emplace_back(address, std::move(socket), agent);
      else
        reasons_.push_back(status.message);
    }
  }

  Status run(const JobKey& key, ConnectLimit* limit, ControlConnection* connection) {
    while (!attempts_.empty()) {
      std::vector<pollfd> waits;
      for (const Attempt& attempt : attempts_) waits.push_back(attempt.wait());
      waits.push_back(limit->life());  // poll() skips a negative descriptor
      const int ready =
          ::poll(waits.data(), waits.size(), poll_timeout(limit->end(is_any_connected())));
      if (ready < 0 && errno != EINTR) return system_status("wait for hvrun", errno);
      // What came while this process had to wait for a CPU counts.
      if (ready == 0 && now() >= limit->end(is_any_connected())) break;
      if (ready <= 0) continue;
      if (waits.back().revents != 0) limit->check_life();
      for (std::size_t i = attempts_.size(); i-- > 0;)
        if (waits[i].revents != 0 && advance(i, key, connection)) return Status::success();
    }
    for (const Attempt& attempt : attempts_)
      reasons_.push_back(attempt.address().text() + ": no answer in time");
    return {StatusCode::kSystem, "connect to hvrun: " + join(reasons_, "; ")};
  }
  // A peer accepted the connection and closed it before its proof, as a gate with too many guests
  // does.
  bool was_any_closed() const { return was_any_closed_; }

 private:
  bool is_any_connected() const {
    return std::any_of(attempts_.begin(), attempts_.end(),
                       [](const Attempt& attempt) { return attempt.is_connected(); });
  }
  // True: both ends have proven the key. Removes an attempt that has failed.
  bool advance(std::size_t index, const JobKey& key, ControlConnection* connection) {
    Attempt& attempt = attempts_[index];
    Status status = attempt.advance();
    if (status.ok() && attempt.has_answer()) {
      status = attempt.prove(key, connection);
      if (status.ok()) return true;
    }
    if (status.ok()) return false;
    was_any_closed_ = was_any_closed_ || attempt.was_closed();
    reasons_.push_back(attempt.address().text() + ": " + status.message);
    attempts_.erase(attempts_.begin() + static_cast<std::ptrdiff_t>(index));
    return false;
  }

  std::vector<Attempt> attempts_;
  std::vector<std::string> reasons_;
  bool was_any_closed_ = false;
};

// Randomised, so that agents that were refused at the same time do not return at the same time.
Duration pause_before(int attempt) {
  const Nonce random = random_nonce();
  const int share = static_cast<unsigned char>(random[0]);
  return kFirstPause * (1 << attempt) * (256 + share) / 512;
}

}  // namespace

Status connect_to_hvrun(const std::vector<SocketAddress>& addresses, const std::string& agent,
                        const JobKey& key, const ConnectWait& wait, ControlConnection* connection) {
  ConnectLimit limit(wait);
  for (int attempt = 0;; ++attempt) {
    Round round(addresses, agent);
    const Status status = round.run(key, &limit, connection);
    const Duration pause = pause_before(attempt);
    const bool is_late = !limit.may_hvrun_live() && now() + pause >= limit.end(false);
    if (status.ok() || !round.was_any_closed() || attempt == kMostAttempts - 1 || is_late)
      return status;
    (void)::poll(nullptr, 0, static_cast<int>(time_until(now() + pause).count()));
    limit.start_anew();
  }
}

}  // namespace hv::launcher
