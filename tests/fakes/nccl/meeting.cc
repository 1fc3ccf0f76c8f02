// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/nccl/meeting.h"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <list>
#include <mutex>
#include <random>
#include <thread>
#include <utility>

#include "src/base/signal_block.h"
#include "tests/fakes/nccl/outside.h"

namespace hv::fake {
namespace {

struct Answer {
  int result = nccl::kSuccess;
  char why[160] = {};
};

struct Guest {
  UniqueFd socket;
  Member member;
};

enum class Purpose : int { kWork, kHost, kAlive };

struct Greeting {
  int from = 0;
  Purpose purpose = Purpose::kWork;
};

constexpr char kGoodbye = 'g';

Answer make_answer(int result, const std::string& why) {
  Answer answer;
  answer.result = result;
  std::strncpy(answer.why, why.c_str(), sizeof answer.why - 1);
  return answer;
}

Answer answer_of(const std::vector<Guest>& guests) {
  for (const Guest& one : guests)
    for (const Guest& other : guests) {
      const Member &left = one.member, &right = other.member;
      if (left.rank >= right.rank || std::memcmp(left.gpu, right.gpu, sizeof left.gpu) != 0 ||
          (left.shares_gpu && right.shares_gpu))
        continue;
      return make_answer(nccl::kInvalidUsage,
                         "Duplicate GPU detected : rank " + std::to_string(left.rank) +
                             " and rank " + std::to_string(right.rank) + " both on CUDA device " +
                             std::to_string(left.device));
    }
  return {};
}

void refuse_stranger(const std::vector<Guest>& guests, const Member& comer) {
  for (const Guest& one : guests) {
    if (one.member.ranks != comer.ranks)
      refuse("ranks of one id say that there are " + std::to_string(one.member.ranks) + " and " +
             std::to_string(comer.ranks));
    if (one.member.rank == comer.rank)
      refuse("rank " + std::to_string(comer.rank) + " comes twice with one id");
  }
}

std::atomic<int> guests_of_process{0};

// The maker's side of a meeting.
class Host {
 public:
  explicit Host(UniqueFd listener) : listener_(std::move(listener)) {}

  // Ends when one has died, or when all who had come have left: before or after all had come.
  void run() {
    while (!has_ended_) {
      polled_ = {{listener_.get(), POLLIN, 0}};  // none when all have come
      for (const Guest& one : guests_) polled_.push_back({one.socket.get(), POLLIN, 0});
      ::poll(polled_.data(), polled_.size(), -1);
      for (std::size_t number = guests_.size(); number > 0; --number)
        if (polled_[number].revents != 0) part_from(number - 1);
      if (!has_ended_ && polled_[0].revents != 0) welcome();
    }
  }

 private:
  void welcome() {
    Guest comer{UniqueFd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC)), {}};
    if (!comer.socket || !receive_all(comer.socket.get(), &comer.member, sizeof comer.member))
      return;
    refuse_stranger(guests_, comer.member);
    const auto ranks = static_cast<std::size_t>(comer.member.ranks);
    guests_.push_back(std::move(comer));
    ++guests_of_process;
    if (guests_.size() + left_ < ranks || left_ > 0) return;
    listener_.reset();
    const Answer answer = answer_of(guests_);
    tell_all(answer);
    has_ended_ = answer.result != nccl::kSuccess;
  }

  void part_from(std::size_t number) {
    char word = 0;
    const bool has_left = receive_some(guests_[number].socket.get(), &word, 1) == 1;
    const int rank = guests_[number].member.rank;
    guests_.erase(guests_.begin() + static_cast<std::ptrdiff_t>(number));
    ++left_;
    if (!has_left)
      tell_all(make_answer(nccl::kRemoteError, "rank " + std::to_string(rank) + " has died"));
    has_ended_ = !has_left || guests_.empty();
  }

  void tell_all(const Answer& answer) {
    for (const Guest& one : guests_) send_all(one.socket.get(), &answer, sizeof answer);
  }

  UniqueFd listener_;
  std::vector<Guest> guests_;
  std::vector<pollfd> polled_;
  std::size_t left_ = 0;
  bool has_ended_ = false;
};

// Nobody may come with an id that a failed job made. Its host then waits until the process ends,
// and this list keeps what it holds from being taken for a leak.
struct Hosts {
  std::mutex mutex;
  std::list<Host> all;
};

Hosts& hosts_of_process() {
  static Hosts* const hosts = new Hosts;  // never freed: their threads outlive static objects
  return *hosts;
}

void run_host(UniqueFd listener) {
  Hosts& hosts = hosts_of_process();
  std::unique_lock lock(hosts.mutex);
  const auto host = hosts.all.emplace(hosts.all.end(), std::move(listener));
  lock.unlock();
  host->run();
  lock.lock();
  hosts.all.erase(host);
}

std::string name_of(const nccl::UniqueId& id) { return id.bytes; }

std::string name_of(const nccl::UniqueId& id, int rank) {
  return name_of(id) + "/" + std::to_string(rank);
}

// A rank's side, after the answer.
class Weaver {
 public:
  Weaver(const nccl::UniqueId& id, const Member& self, const StopSign& stop)
      : id_(id), self_(self), stop_(stop), ranks_(static_cast<std::size_t>(self.ranks)) {
    for (Sockets* one : {&work_to_, &work_from_, &host_to_, &host_from_, &alive_})
      one->resize(ranks_);
  }

  // False: the sign was set, or a peer is gone, of which the host tells.
  bool weave(int listener, int host, Party* party) {
    for (int peer = 0; peer < self_.ranks; ++peer)
      if (peer != self_.rank && !greet(peer)) return false;
    for (int left = 2 * (self_.ranks - 1) + self_.rank; left > 0; --left)
      if (await_readable({listener, host}, stop_) != listener || !take_greeting(listener))
        return false;
    party->work = Lanes(self_.rank, std::move(work_to_), std::move(work_from_));
    party->host = Lanes(self_.rank, std::move(host_to_), std::move(host_from_));
    party->alive = std::move(alive_);
    return true;
  }

 private:
  using Sockets = std::vector<UniqueFd>;

  bool greet(int peer) {
    const auto to = static_cast<std::size_t>(peer);
    work_to_[to] = greet_for(peer, Purpose::kWork);
    host_to_[to] = greet_for(peer, Purpose::kHost);
    if (self_.rank < peer) alive_[to] = greet_for(peer, Purpose::kAlive);
    return work_to_[to] && host_to_[to] && (self_.rank > peer || alive_[to]);
  }

  UniqueFd greet_for(int peer, Purpose purpose) {
    UniqueFd socket = connect_to(name_of(id_, peer), SOCK_STREAM);
    const Greeting greeting{self_.rank, purpose};
    if (socket && !send_all(socket.get(), &greeting, sizeof greeting)) socket.reset();
    return socket;
  }

  bool take_greeting(int listener) {
    UniqueFd socket(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    Greeting greeting;
    if (!socket || !receive_all(socket.get(), &greeting, sizeof greeting)) return false;
    Sockets& row = greeting.purpose == Purpose::kWork   ? work_from_
                   : greeting.purpose == Purpose::kHost ? host_from_
                                                        : alive_;
    row[static_cast<std::size_t>(greeting.from)] = std::move(socket);
    return true;
  }

  const nccl::UniqueId& id_;
  const Member& self_;
  const StopSign& stop_;
  const std::size_t ranks_;
  Sockets work_to_, work_from_, host_to_, host_from_, alive_;
};

}  // namespace

nccl::UniqueId make_meeting() {
  std::random_device random;
  nccl::UniqueId id = {};
  std::string name = "hvrun-fake-nccl-";
  for (int part = 0; part < 4; ++part) name += std::to_string(random()) + "-";
  std::memcpy(id.bytes, name.data(), std::min(name.size(), sizeof id.bytes - 1));
  // As NCCL's own thread it takes no signal of the program's.
  const SignalBlock block;
  std::thread([listener = listen_at(name_of(id), SOCK_SEQPACKET)]() mutable {
    run_host(std::move(listener));
  }).detach();
  return id;
}

int count_guests() { return guests_of_process; }

int join_meeting(const nccl::UniqueId& id, const Member& self, const StopSign& stop, Party* party,
                 std::string* why) {
  const UniqueFd listener = listen_at(name_of(id, self.rank), SOCK_STREAM);
  const UniqueFd host = connect_to(name_of(id), SOCK_SEQPACKET);
  *why = "whoever made the id is gone, or it was used before";
  if (!host || !send_all(host.get(), &self, sizeof self)) return nccl::kSystemError;
  if (await_readable({host.get()}, stop) < 0) {
    send_all(host.get(), &kGoodbye, 1);
    return nccl::kInProgress;
  }
  Answer answer;
  if (!receive_all(host.get(), &answer, sizeof answer)) return nccl::kRemoteError;
  *why = answer.why;
  if (answer.result != nccl::kSuccess) return answer.result;
  const bool has_all = Weaver(id, self, stop).weave(listener.get(), host.get(), party);
  send_all(host.get(), &kGoodbye, 1);
  if (has_all) return nccl::kSuccess;
  *why = "a rank is gone while all meet";
  return stop.is_set() ? nccl::kInProgress : nccl::kRemoteError;
}

void say_goodbye(const Party& party) {
  for (const UniqueFd& peer : party.alive)
    if (peer) send_all(peer.get(), &kGoodbye, 1);
}

bool is_alive(UniqueFd* peer) {
  char word = 0;
  const std::ptrdiff_t read = *peer ? receive_some(peer->get(), &word, 1) : 0;
  if (read != 0) peer->reset();
  return read >= 0;
}

}  // namespace hv::fake
