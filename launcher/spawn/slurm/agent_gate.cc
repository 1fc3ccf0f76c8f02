// SPDX-License-Identifier: Apache-2.0
#include "launcher/spawn/slurm/agent_gate.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/generic/stream_protocol.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <cerrno>
#include <cstring>
#include <list>

#include "src/net/address.h"
#include "src/net/interfaces.h"
#include "src/net/socket.h"
#include "src/wire/agent_greeting.h"
#include "src/wire/sealed_stream.h"

namespace hv::launcher {
namespace {

namespace asio = boost::asio;

// Until an accept that the system refused (no descriptors, say) is tried again.
constexpr auto kAcceptPause = std::chrono::milliseconds(100);
// Within which an agent has proven itself, once it was let in.
constexpr auto kTimeOfAgents = std::chrono::seconds(1);

constexpr std::size_t kReadBytes = 64 << 10;

using TcpSocket = asio::generic::stream_protocol::socket;

// An AgentChannel over a TCP connection whose both ends have proven the key.
class SealedChannel : public AgentChannel {
 public:
  SealedChannel(TcpSocket socket, const ControlKeys& keys)
      : socket_(std::move(socket)),
        sealer_(keys.to_agent),
        opener_(keys.to_hvrun),
        sealed_(kReadBytes, '\0') {}

  asio::awaitable<std::size_t> read_some(asio::mutable_buffer buffer) override {
    while (taken_ == arrived_.size()) {
      arrived_.clear();
      taken_ = 0;
      boost::system::error_code error;
      const std::size_t got = co_await socket_.async_read_some(
          asio::buffer(sealed_), asio::redirect_error(asio::use_awaitable, error));
      if (error) {
        if (error != asio::error::eof && words_.empty()) words_ = error.message();
        co_return 0;
      }
      if (opener_.open({sealed_.data(), got}, &arrived_)) continue;
      words_ = "what came from the agent had been changed on its way";
      close();
      co_return 0;
    }
    const std::size_t size = std::min(buffer.size(), arrived_.size() - taken_);
    std::memcpy(buffer.data(), arrived_.data() + taken_, size);
    taken_ += size;
    co_return size;
  }

  asio::awaitable<bool> write(asio::const_buffer buffer) override {
    std::string sealed;
    sealer_.seal({static_cast<const char*>(buffer.data()), buffer.size()}, &sealed);
    boost::system::error_code error;
    co_await asio::async_write(socket_, asio::buffer(sealed),
                               asio::redirect_error(asio::use_awaitable, error));
    co_return !error;
  }

  void close() override {
    boost::system::error_code ignored;
    socket_.close(ignored);
  }

  std::string last_words() const override { return words_; }

 private:
  TcpSocket socket_;
  Sealer sealer_;
  Opener opener_;
  std::string sealed_;   // what comes is read into it
  std::string arrived_;  // opened, from taken_ on not yet read
  std::size_t taken_ = 0;
  std::string words_;
};

// What a guest has proven.
struct Proven {
  std::string agent;
  ControlKeys keys;
};

}  // namespace

struct AgentGate::State : std::enable_shared_from_this<AgentGate::State> {
  State(asio::any_io_executor on, GateCallbacks to)
      : executor(on), callbacks(std::move(to)), key(random_key()), listener(on), room(on) {}

  asio::any_io_executor executor;
  GateCallbacks callbacks;
  const JobKey key;
  std::vector<std::string> addresses;
  asio::posix::stream_descriptor listener;
  asio::steady_timer room;  // cancelled when a guest has left
  struct Guest {
    TcpSocket* socket;
    TimePoint since = now();
  };
  std::list<Guest> guests;  // who have yet to prove the key, the oldest first
  bool is_closed = false;

  void close() {
    boost::system::error_code ignored;
    is_closed = true;
    listener.close(ignored);
    room.cancel();
  }

  // Those that have taken longer than an agent does.
  void drop_late() {
    boost::system::error_code ignored;
    while (!guests.empty() && now() - guests.front().since > kTimeOfAgents) {
      guests.front().socket->close(ignored);
      guests.pop_front();
    }
  }

  // One more guest, or why there is none.
  UniqueFd accept_one(int* error) {
    UniqueFd socket(
        ::accept4(listener.native_handle(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    *error = socket ? 0 : errno;
    return socket;
  }

  asio::awaitable<void> accept_guests() {
    const auto self = shared_from_this();
    boost::system::error_code ignored;
    while (!is_closed) {
      int error = 0;
      UniqueFd socket;
      const bool has_room = guests.size() < kMostGuests;
      if (has_room) socket = accept_one(&error);
      if (socket) {
        asio::co_spawn(executor, receive(std::move(socket)), asio::detached);
      } else if (has_room && error == EAGAIN) {
        co_await listener.async_wait(asio::posix::descriptor_base::wait_read,
                                     asio::redirect_error(asio::use_awaitable, ignored));
      } else if (!has_room || (error != EINTR && error != ECONNABORTED)) {
        drop_late();
        room.expires_after(kAcceptPause);
        co_await room.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
      }
    }
  }

  asio::awaitable<void> receive(UniqueFd fd) {
    const auto self = shared_from_this();
    const int family = family_of(fd.get());
    const int on = 1;
    ::setsockopt(fd.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    TcpSocket socket(executor);
    socket.assign({family, IPPROTO_TCP}, fd.release());
    guests.push_back({&socket});
    const auto proven = co_await prove_in_time(socket);
    guests.remove_if([&socket](const Guest& guest) { return guest.socket == &socket; });
    room.cancel();
    // Others may have proven the same name meanwhile.
    if (proven && !is_closed && callbacks.is_awaited(proven->agent))
      callbacks.arrived(proven->agent,
                        std::make_unique<SealedChannel>(std::move(socket), proven->keys));
  }

  static int family_of(int socket) {
    sockaddr_storage raw{};
    socklen_t size = sizeof raw;
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&raw), &size);
    return raw.ss_family;
  }

  asio::awaitable<std::shared_ptr<Proven>> prove_in_time(TcpSocket& socket) {
    // The handler may run when the socket has gone on into a channel.
    const auto guest = std::make_shared<TcpSocket*>(&socket);
    asio::steady_timer limit(executor, kTimeForProof);
    limit.async_wait([guest](const boost::system::error_code& error) {
      boost::system::error_code ignored;
      if (!error && *guest != nullptr) (*guest)->close(ignored);
    });
    auto proven = co_await prove(socket);
    *guest = nullptr;
    co_return proven;
  }

  // nullptr: an enemy, or a friend who has left.
  asio::awaitable<std::shared_ptr<Proven>> prove(TcpSocket& socket) {
    boost::system::error_code error;
    std::string words(kGreetingBytes, '\0');
    co_await asio::async_read(socket, asio::buffer(words),
                              asio::redirect_error(asio::use_awaitable, error));
    const auto greeting = error ? std::nullopt : decode_greeting(words);
    if (!greeting || is_closed || !callbacks.is_awaited(greeting->agent)) co_return nullptr;
    const Nonce nonce = random_nonce();
    const std::string answer = answer_greeting(key, *greeting, nonce);
    co_await asio::async_write(socket, asio::buffer(answer),
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) co_return nullptr;
    std::string proof(kProofBytes, '\0');
    co_await asio::async_read(socket, asio::buffer(proof),
                              asio::redirect_error(asio::use_awaitable, error));
    if (error || !is_agent_proven(key, *greeting, nonce, proof)) co_return nullptr;
    co_return std::make_shared<Proven>(
        Proven{greeting->agent, control_keys(key, greeting->nonce, nonce)});
  }
};

AgentGate::AgentGate(asio::any_io_executor executor, const PortRange& range,
                     GateCallbacks callbacks)
    : state_(std::make_shared<State>(executor, std::move(callbacks))) {
  UniqueFd listener;
  std::uint16_t port = 0;
  const Status status =
      listen_tcp_in(range, static_cast<std::uint32_t>(::getpid()), &listener, &port);
  if (!status.ok())
    throw Error(ErrorKind::kStart, "listen for the agents that srun starts: " + status.message,
                range.is_any() ? "" : "widen HVRUN_PORT_RANGE=" + range.text());
  for (const std::string& ip : interface_addresses())
    if (const auto address = SocketAddress::parse(ip, port))
      state_->addresses.push_back(address->text());
  if (state_->addresses.empty()) state_->addresses.push_back("127.0.0.1:" + std::to_string(port));
  state_->listener.assign(listener.release());
  asio::co_spawn(executor, state_->accept_guests(), asio::detached);
}

AgentGate::~AgentGate() { state_->close(); }

const JobKey& AgentGate::key() const { return state_->key; }

const std::vector<std::string>& AgentGate::addresses() const { return state_->addresses; }

}  // namespace hv::launcher
