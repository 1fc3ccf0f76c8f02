// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/star_exchange.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "src/base/signal_block.h"
#include "src/base/text.h"
#include "src/base/unique_fd.h"
#include "src/net/socket.h"
#include "src/rendezvous/long_wait.h"
#include "src/wire/agent_greeting.h"
#include "src/wire/codec.h"
#include "src/wire/sealed_stream.h"
#include "src/wire/wipe.h"

namespace hv {
namespace {

struct Gathered {
  std::vector<std::string> all;
  void fields(auto& a) { a(all); }
};

}  // namespace

std::string frame_head(std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  return {reinterpret_cast<const char*>(&size), sizeof size};
}

FrameState take_frame(std::string* come, std::uint64_t most, std::string* bytes) {
  std::uint64_t size = 0;
  if (come->size() < sizeof size) return FrameState::kPartial;
  std::memcpy(&size, come->data(), sizeof size);
  if (size > most) return FrameState::kTooLong;
  if (come->size() - sizeof size < size) return FrameState::kPartial;
  bytes->assign(*come, sizeof size, size);
  std::string rest = come->substr(sizeof size + size);
  wipe(come);
  come->swap(rest);
  return FrameState::kWhole;
}

std::string encode_gathered(std::vector<std::string> all) {
  return encode(Gathered{std::move(all)});
}

bool decode_gathered(std::string_view bytes, std::size_t ranks, std::vector<std::string>* all) {
  Gathered gathered;
  if (!decode(bytes, &gathered) || gathered.all.size() != ranks) return false;
  *all = std::move(gathered.all);
  return true;
}

namespace {

constexpr auto kTimeForProof = std::chrono::seconds(10);
constexpr auto kNextTry = std::chrono::milliseconds(50), kLongestPause = 40 * kNextTry;
constexpr auto kConnectTime = std::chrono::seconds(2);
constexpr std::size_t kMostGuests = 64;
constexpr auto kTimeOfRanks = std::chrono::seconds(2);  // within which a rank has proven itself
constexpr std::uint64_t kMostFromRank = 16 << 20, kMostFromFirst = 1 << 30;

std::string star_context(const std::string& what) {
  return "meet the other tasks of the step: " + what;
}

std::string guest_name(const StarTerms& terms, int rank) {
  return "star " + terms.name + " " + std::to_string(rank);
}

// -1: it is no name of a rank that rank 0 awaits.
int rank_of_guest(const StarTerms& terms, const std::string& name) {
  const auto rank = parse_integer(name.substr(name.rfind(' ') + 1)).value_or(-1);
  if (rank < 1 || rank >= terms.size) return -1;
  return name == guest_name(terms, static_cast<int>(rank)) ? static_cast<int>(rank) : -1;
}

// A connection whose both ends have proven the key.
class Peer {
 public:
  Peer(UniqueFd socket, const JobKey& to, const JobKey& from)
      : socket_(std::move(socket)), sealer_(to), opener_(from) {}

  Status send(std::string_view bytes, TimePoint deadline) {
    std::string sealed;
    sealer_.seal(frame_head(bytes), &sealed);
    sealer_.seal(bytes, &sealed);
    return send_all(socket_.get(), sealed.data(), sealed.size(), time_until(deadline));
  }

  Status receive(std::uint64_t most, TimePoint deadline, std::string* bytes) {
    for (;;) {
      const FrameState state = take_frame(&opened_, most, bytes);
      if (state == FrameState::kWhole) return Status::success();
      if (state == FrameState::kTooLong) return {StatusCode::kContract, "it says too much at once"};
      if (Status status = receive_some(deadline); !status.ok()) return status;
    }
  }

 private:
  Status receive_some(TimePoint deadline) {
    pollfd wait{socket_.get(), POLLIN, 0};
    const auto left = std::min<long long>(time_until(deadline).count(), 1 << 30);
    const int ready = ::poll(&wait, 1, static_cast<int>(left));
    if (ready == 0) return {StatusCode::kSystem, "it has said nothing in time"};
    char bytes[16 << 10];
    const ssize_t got = ready > 0 ? ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT) : -1;
    if (got < 0 && (errno == EINTR || errno == EAGAIN)) return Status::success();
    if (got < 0) return system_status("receive", errno);
    if (got == 0) return {StatusCode::kPeerLost, "it has left"};
    if (opener_.open({bytes, static_cast<std::size_t>(got)}, &opened_)) return Status::success();
    return {StatusCode::kContract, "what came had been changed on its way"};
  }

  UniqueFd socket_;
  Sealer sealer_;
  Opener opener_;
  std::string opened_;
};

class StarExchange : public Exchange {
 public:
  // peers: rank 0's by rank, none for itself; another rank's: rank 0.
  StarExchange(int rank, int size, std::vector<std::optional<Peer>> peers)
      : rank_(rank), size_(size), peers_(std::move(peers)) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }

  // Rank 0 names who is missing, for all of them.
  Status gather(const std::string& mine, const WaitLimits& limits,
                std::vector<std::string>* all) override {
    const TimePoint deadline = now() + limits.timeout;
    if (rank_ != 0) return gather_there(mine, deadline, all);
    const LongWait wait(limits.stall, [this, &limits] {
      const int rank = awaited_;
      return rank == 0 ? "rank 0 still gives the others what all have said"
                       : waited_words(0, limits.stall,
                                      "rank " + std::to_string(rank) + ", and perhaps others,");
    });
    return gather_here(mine, deadline, all);
  }

 private:
  static Status about(int rank, const Status& status) {
    return {status.code, star_context("rank " + std::to_string(rank) + ": " + status.message)};
  }

  Status gather_here(const std::string& mine, TimePoint deadline, std::vector<std::string>* all) {
    std::vector<std::string> gathered(static_cast<std::size_t>(size_));
    gathered[0] = mine;
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
      awaited_ = static_cast<int>(rank);
      const Status status = peers_[rank]->receive(kMostFromRank, deadline, &gathered[rank]);
      if (!status.ok()) return about(static_cast<int>(rank), status);
    }
    awaited_ = 0;
    std::string bytes = encode_gathered(gathered);
    for (std::size_t rank = 1; rank < peers_.size(); ++rank) {
      const Status status = peers_[rank]->send(bytes, deadline);
      if (!status.ok()) return about(static_cast<int>(rank), status);
    }
    wipe(&bytes);
    *all = std::move(gathered);
    return Status::success();
  }

  Status gather_there(const std::string& mine, TimePoint deadline, std::vector<std::string>* all) {
    std::string bytes;
    Status status = peers_[0]->send(mine, deadline);
    if (status.ok()) status = peers_[0]->receive(kMostFromFirst, deadline, &bytes);
    if (!status.ok()) return about(0, status);
    const bool is_whole = decode_gathered(bytes, static_cast<std::size_t>(size_), all);
    wipe(&bytes);
    return is_whole ? Status::success()
                    : about(0, {StatusCode::kContract, "it does not say who all are"});
  }

  const int rank_, size_;
  std::vector<std::optional<Peer>> peers_;
  std::atomic<int> awaited_{0};  // rank 0's: from whom it reads; 0: from nobody any more
};

// ---- rank 0

// Takes guests in until every rank is among them. One thread each: a key may come by a call that
// blocks (munge).
class Host {
 public:
  Host(const StarTerms& terms, const StarKey& key) : terms_(terms), key_(key) {
    peers_.resize(static_cast<std::size_t>(terms.size));
  }
  ~Host() { dismiss_guests(); }

  Status run(const WaitLimits& limits) {
    const TimePoint deadline = now() + limits.timeout;
    UniqueFd listener;
    if (Status status = listen(&listener); !status.ok()) return status;
    const LongWait wait(limits.stall,
                        [&] { return waited_words(0, limits.stall, missing_words()); });
    while (missing() > 0) {
      if (now() >= deadline)
        return {StatusCode::kSystem, star_context(missing_words() + " did not come in time")};
      pollfd guests{listener.get(), POLLIN, 0};
      // Guests that are being looked at tell nobody when they are done; further ones wait.
      ::poll(&guests, has_room() ? 1 : 0, static_cast<int>(kNextTry.count()));
      join(take_done());
      if (guests.revents == 0) continue;
      UniqueFd guest(::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
      if (guest) take_in(std::move(guest));
    }
    return Status::success();
  }
  std::vector<std::optional<Peer>> take_peers() {
    dismiss_guests();
    return std::move(peers_);
  }

 private:
  struct Guest {
    UniqueFd socket;  // a proven rank's goes on to its Peer
    TimePoint since = now();
    bool is_done = false, is_dropped = false;
    std::thread thread{};
  };

  Status listen(UniqueFd* listener) const {
    Status last;
    std::uint16_t bound = 0;
    for (const std::uint16_t port : terms_.ports)
      if (last = listen_tcp(port, listener, &bound); last.ok()) return last;
    return {last.code, star_context(last.message)};
  }
  std::size_t missing() {
    const std::lock_guard lock(mutex_);
    return peers_.size() - 1 - arrived_;
  }
  std::string missing_words() {
    const std::lock_guard lock(mutex_);
    std::vector<int> ranks;
    for (std::size_t rank = 1; rank < peers_.size(); ++rank)
      if (!peers_[rank]) ranks.push_back(static_cast<int>(rank));
    return printable(ranges_of("rank", ranks), 200);
  }

  std::list<Guest> take_done() {
    const std::lock_guard lock(mutex_);
    std::list<Guest> done;
    for (auto guest = guests_.begin(); guest != guests_.end();) {
      const auto next = std::next(guest);
      if (guest->is_done) done.splice(done.end(), guests_, guest);
      guest = next;
    }
    return done;
  }
  static void join(std::list<Guest> done) {
    for (Guest& guest : done) guest.thread.join();
  }
  // Where too many are under way those that have taken longer than a rank does have to go.
  bool has_room() {
    std::list<Guest> late;
    {
      const std::lock_guard lock(mutex_);
      if (guests_.size() < kMostGuests) return true;
      while (!guests_.empty() && now() - guests_.front().since > kTimeOfRanks) {
        drop(&guests_.front());
        late.splice(late.end(), guests_, guests_.begin());
      }
    }
    join(std::move(late));
    return guests_.size() < kMostGuests;
  }
  static void drop(Guest* guest) {
    guest->is_dropped = true;
    ::shutdown(guest->socket.get(), SHUT_RDWR);
  }
  // Whoever is still being looked at is no rank that is missing.
  void dismiss_guests() {
    std::list<Guest> all;
    {
      const std::lock_guard lock(mutex_);
      for (Guest& guest : guests_) drop(&guest);
      all.swap(guests_);
    }
    join(std::move(all));
  }

  void take_in(UniqueFd socket) {
    const SignalBlock block;  // our threads handle none
    const std::lock_guard lock(mutex_);
    Guest& guest = guests_.emplace_back(Guest{std::move(socket)});
    const auto receive = [this, &guest, connection = guest.socket.get()] {
      ControlKeys keys;
      const int rank = prove(connection, now() + kTimeForProof, &keys);
      const std::lock_guard held(mutex_);
      guest.is_done = true;
      // A proof may have come before its connection was shut down.
      if (rank < 0 || guest.is_dropped || peers_[static_cast<std::size_t>(rank)]) return;
      peers_[static_cast<std::size_t>(rank)].emplace(std::move(guest.socket), keys.to_agent,
                                                     keys.to_hvrun);
      ++arrived_;
    };
    try {
      guest.thread = std::thread(receive);
    } catch (const std::system_error&) {
      guests_.pop_back();  // it tries again
    }
  }

  // The rank, -1 for a stranger.
  int prove(int socket, TimePoint deadline, ControlKeys* keys) const {
    JobKey key;
    std::string words(kGreetingBytes, '\0'), proof(kProofBytes, '\0');
    if (!key_.of_first(socket, deadline, &key).ok() ||
        !read_exactly(socket, words.data(), words.size(), time_until(deadline)).ok())
      return -1;
    const auto greeting = decode_greeting(words);
    const int rank = greeting ? rank_of_guest(terms_, greeting->agent) : -1;
    if (rank < 0) return -1;
    const Nonce ours = random_nonce();
    const std::string answer = answer_greeting(key, *greeting, ours);
    if (!send_all(socket, answer.data(), answer.size(), time_until(deadline)).ok() ||
        !read_exactly(socket, proof.data(), proof.size(), time_until(deadline)).ok() ||
        !is_agent_proven(key, *greeting, ours, proof))
      return -1;
    *keys = control_keys(key, greeting->nonce, ours);
    return rank;
  }

  const StarTerms& terms_;
  const StarKey& key_;
  std::mutex mutex_;  // guards what follows; guests are added and taken away by one thread
  std::vector<std::optional<Peer>> peers_;
  std::size_t arrived_ = 0;
  std::list<Guest> guests_;
};

// ---- another rank

Status prove_to_first(const StarTerms& terms, const StarKey& star_key, UniqueFd socket,
                      std::optional<Peer>* peer) {
  const TimePoint deadline = now() + kTimeForProof;
  JobKey key;
  if (Status status = star_key.of_other(socket.get(), deadline, &key); !status.ok()) return status;
  const AgentGreeting greeting{guest_name(terms, terms.rank), random_nonce()};
  const std::string words = encode_greeting(greeting);
  std::string answer(kAnswerBytes, '\0');
  Status status = send_all(socket.get(), words.data(), words.size(), time_until(deadline));
  if (status.ok())
    status = read_exactly(socket.get(), answer.data(), answer.size(), time_until(deadline));
  if (!status.ok()) return status;
  const auto first = check_answer(key, greeting, answer);
  if (!first) return {StatusCode::kContract, "who answers there is not rank 0 of this step"};
  status = send_all(socket.get(), first->proof.data(), first->proof.size(), time_until(deadline));
  if (!status.ok()) return status;
  const ControlKeys keys = control_keys(key, greeting.nonce, first->nonce);
  peer->emplace(std::move(socket), keys.to_hvrun, keys.to_agent);
  return Status::success();
}

Status try_address(const StarTerms& terms, const StarKey& key, const SocketAddress& address,
                   std::optional<Peer>* peer) {
  UniqueFd socket;
  if (Status status = start_connect(address, &socket); !status.ok()) return status;
  pollfd wait{socket.get(), POLLOUT, 0};
  const auto limit = std::chrono::milliseconds(kConnectTime).count();
  if (::poll(&wait, 1, static_cast<int>(limit)) <= 0)
    return {StatusCode::kSystem, "connect to " + address.text() + ": no answer"};
  if (Status status = finish_connect(socket.get(), address); !status.ok()) return status;
  const Status status = prove_to_first(terms, key, std::move(socket), peer);
  return status.ok() ? status : Status{status.code, address.text() + ": " + status.message};
}

Status find_first(const StarTerms& terms, const StarKey& key, TimePoint deadline,
                  std::optional<Peer>* peer) {
  Status last{StatusCode::kSystem, "rank 0's host has no address"};
  auto pause = kNextTry;
  while (now() < deadline) {
    for (const std::string& ip : terms.first_host())
      for (const std::uint16_t port : terms.ports) {
        const auto address = SocketAddress::parse(ip, port);
        if (address) last = try_address(terms, key, *address, peer);
        if (last.ok()) return last;
      }
    // Thousands of ranks may wait for one that takes its time.
    ::poll(nullptr, 0, static_cast<int>(pause.count()));
    pause = std::min(2 * pause, kLongestPause);
  }
  return {last.code, star_context("rank 0 was not found in time; the last try: " + last.message)};
}

}  // namespace

Status open_star(const StarTerms& terms, const StarKey& key, const WaitLimits& limits,
                 std::unique_ptr<Exchange>* exchange) {
  std::vector<std::optional<Peer>> peers;
  if (terms.rank == 0) {
    Host host(terms, key);
    if (Status status = host.run(limits); !status.ok()) return status;
    peers = host.take_peers();
  } else {
    peers.resize(1);
    const LongWait wait(limits.stall,
                        [&] { return waited_words(terms.rank, limits.stall, "rank 0"); });
    const TimePoint deadline = now() + limits.timeout;
    if (Status status = find_first(terms, key, deadline, &peers[0]); !status.ok()) return status;
  }
  *exchange = std::make_unique<StarExchange>(terms.rank, terms.size, std::move(peers));
  return Status::success();
}

}  // namespace hv
