// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/control_connection.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <optional>

#include "src/base/text.h"
#include "src/net/socket.h"
#include "src/wire/wipe.h"

namespace hv::launcher {
namespace {

constexpr std::size_t kMostAddresses = 64;
// Time for a host that has accepted a connection, while other addresses wait.
constexpr auto kTimeForProof = std::chrono::seconds(5);

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

struct Attempt {
  SocketAddress address;
  UniqueFd socket;
};

// The handshake of agent_greeting.h over a new connection. was_closed: the other end closed it
// before its proof.
Status prove(int socket, const std::string& agent, const JobKey& key, TimePoint deadline,
             ControlKeys* keys, bool* was_closed) {
  const AgentGreeting greeting{agent, random_nonce()};
  const std::string bytes = encode_greeting(greeting);
  if (Status status = send_all(socket, bytes.data(), bytes.size(), time_until(deadline));
      !status.ok())
    return status;
  std::string answer(kAnswerBytes, '\0');
  if (Status status = read_exactly(socket, answer.data(), answer.size(), time_until(deadline));
      !status.ok()) {
    *was_closed = now() < deadline;
    return status;
  }
  const auto hvrun = check_answer(key, greeting, answer);
  if (!hvrun) return {StatusCode::kSystem, "who answers there is not the hvrun of this job"};
  *keys = control_keys(key, greeting.nonce, hvrun->nonce);
  return send_all(socket, hvrun->proof.data(), hvrun->proof.size(), time_until(deadline));
}

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
    const int ready = ::poll(&wait, 1, static_cast<int>(time_until(deadline).count()));
    const ssize_t got = ready > 0 ? ::read(fd, line.data() + size, line.size() - size) : ready;
    const int error = errno;
    if (got > 0) {
      size += static_cast<std::size_t>(got);
    } else if (ready == 0) {
      status = {StatusCode::kSystem, doing + ": nothing came in time"};
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

// is_full: a peer accepted the connection and closed it before its proof, as a gate with too many
// guests does.
Status connect_once(const std::vector<SocketAddress>& addresses, const std::string& agent,
                    const JobKey& key, TimePoint deadline, ControlConnection* connection,
                    bool* is_full) {
  std::vector<Attempt> attempts;
  std::vector<std::string> reasons;
  for (const SocketAddress& address : addresses) {
    UniqueFd socket;
    const Status status = start_connect(address, &socket);
    if (status.ok()) {
      attempts.push_back({address, std::move(socket)});
    } else {
      reasons.push_back(status.message);
    }
  }
  while (!attempts.empty() && now() < deadline) {
    std::vector<pollfd> waits;
    for (const Attempt& attempt : attempts) waits.push_back({attempt.socket.get(), POLLOUT, 0});
    const int ready =
        ::poll(waits.data(), waits.size(), static_cast<int>(time_until(deadline).count()) + 1);
    if (ready < 0 && errno != EINTR) return system_status("wait for hvrun", errno);
    for (std::size_t i = waits.size(); ready > 0 && i-- > 0;) {
      if (waits[i].revents == 0) continue;
      Status status = finish_connect(attempts[i].socket.get(), attempts[i].address);
      if (status.ok()) {
        bool was_closed = false;
        status = prove(attempts[i].socket.get(), agent, key,
                       std::min(deadline, now() + kTimeForProof), &connection->keys, &was_closed);
        *is_full = *is_full || was_closed;
      }
      if (status.ok()) {
        connection->socket = std::move(attempts[i].socket);
        return status;
      }
      reasons.push_back(attempts[i].address.text() + ": " + status.message);
      attempts.erase(attempts.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  for (const Attempt& attempt : attempts)
    reasons.push_back(attempt.address.text() + ": no answer in time");
  return {StatusCode::kSystem, "connect to hvrun: " + join(reasons, "; ")};
}

// Randomised, so that agents that were refused at the same time do not return at the same time.
Duration pause_before(int attempt) {
  const Nonce random = random_nonce();
  const int share = static_cast<unsigned char>(random[0]);
  return kFirstPause * (1 << attempt) * (256 + share) / 512;
}

}  // namespace

Status connect_to_hvrun(const std::vector<SocketAddress>& addresses, const std::string& agent,
                        const JobKey& key, TimePoint deadline, ControlConnection* connection) {
  for (int attempt = 0;; ++attempt) {
    bool is_full = false;
    const Status status = connect_once(addresses, agent, key, deadline, connection, &is_full);
    const Duration pause = pause_before(attempt);
    if (status.ok() || !is_full || attempt == kMostAttempts - 1 || now() + pause >= deadline)
      return status;
    (void)::poll(nullptr, 0, static_cast<int>(time_until(now() + pause).count()));
  }
}

}  // namespace hv::launcher
