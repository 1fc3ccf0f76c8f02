// The rank's end of the agent's socket.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/agent_store.h"

#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "src/base/check.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/net/socket.h"

namespace hv {
namespace {

using rendezvous::Type;

bool watch(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  return ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

// An abstract name can be taken by anybody: who listens there must be this user's agent, or root's.
Status check_owner(int socket) {
  std::uint32_t user = 0;
  std::int32_t pid = 0;
  if (Status status = peer_user(socket, &user, &pid); !status.ok()) return status;
  if (user == ::geteuid() || user == 0) return Status::success();
  return {StatusCode::kContract, "it belongs to user " + std::to_string(user) + " (pid " +
                                     std::to_string(pid) + "), not to this one"};
}

std::string name_of(int rank) { return "rank " + std::to_string(rank); }

// Nothing to do about a failure but to say so: the agent sees the rank's end in any case.
void warn_unless(const Status& status) {
  if (!status.ok()) {
    HV_LOG(kWarn, "rendezvous") << status.message;
  }
}

}  // namespace

AgentStore::AgentStore(UniqueFd socket, std::string name, std::chrono::milliseconds timeout)
    : socket_(std::move(socket)),
      kept_(UniqueFd(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK))),
      readiness_(UniqueFd(::epoll_create1(EPOLL_CLOEXEC))),
      name_(std::move(name)),
      timeout_(timeout) {}

Status AgentStore::watch_events() {
  if (kept_ && readiness_ && watch(readiness_.get(), socket_.get()) &&
      watch(readiness_.get(), kept_.get()))
    return Status::success();
  return system_status("watch the agent's socket", errno);
}

Status AgentStore::join(const std::string& socket_name, int rank, int epoch,
                        std::chrono::milliseconds timeout, std::unique_ptr<AgentStore>* store) {
  const std::string doing = "join the job as " + name_of(rank);
  UniqueFd socket;
  if (Status status = connect_unix(socket_name, &socket); !status.ok()) {
    return {status.code, doing + ": " + status.message +
                             "; is the hvrun-agent that started this rank still there?"};
  }
  if (Status status = check_owner(socket.get()); !status.ok())
    return {status.code, doing + ": the agent's socket " + printable(socket_name) + ": " +
                             status.message + "; start this rank by hvrun"};
  std::unique_ptr<AgentStore> made(new AgentStore(std::move(socket), socket_name, timeout));
  if (Status status = made->watch_events(); !status.ok())
    return {status.code, doing + ": " + status.message};
  rendezvous::Join hello;
  hello.rank = static_cast<std::uint32_t>(rank);
  hello.epoch = static_cast<std::uint32_t>(epoch);
  if (Status status = made->send(hello, doing); !status.ok()) return status;
  rendezvous::Welcome welcome;
  if (Status status = made->await(&welcome, doing, now() + timeout, false); !status.ok())
    return status;
  made->key_ = welcome.key;
  *store = std::move(made);
  return Status::success();
}

template <class Message>
Status AgentStore::send(const Message& message, const std::string& doing) {
  if (!broken_.empty()) return broken(doing);
  const std::string frame = encode_frame_of(message);
  const Status status = send_all(socket_.get(), frame.data(), frame.size(), timeout_);
  if (status.ok()) return status;
  break_off(status.message);
  return broken(doing);
}

template <class Message>
Status AgentStore::await(Message* message, const std::string& doing, TimePoint deadline,
                         bool loss_ends_it) {
  for (;;) {
    if (!replies_.empty()) {
      Frame frame = std::move(replies_.front());
      replies_.pop_front();
      const bool is_it =
          frame.type == static_cast<std::uint8_t>(Message::kType) && decode(frame.payload, message);
      if (is_it && SecretMessage<Message>) {
        wipe(&frame.payload);
        parser_.wipe_taken();
      }
      if (is_it) return Status::success();
      rendezvous::Refused refused;
      if (frame.type == static_cast<std::uint8_t>(Type::kRefused) &&
          decode(frame.payload, &refused)) {
        return {StatusCode::kContract, doing + ": the agent refused: " + printable(refused.reason)};
      }
      break_off("the agent sent a message of type " + std::to_string(frame.type) +
                " that was not expected");
    }
    if (loss_ends_it && !loss_.empty()) return {StatusCode::kPeerLost, doing + ": " + loss_};
    if (!broken_.empty()) return broken(doing);
    if (Status status = wait_for_bytes(doing, deadline); !status.ok()) return status;
    receive();
  }
}

Status AgentStore::wait_for_bytes(const std::string& doing, TimePoint deadline) {
  for (;;) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - now()).count();
    if (left < 0) return {StatusCode::kSystem, doing + ": no answer from the agent in time"};
    pollfd entry{socket_.get(), POLLIN, 0};
    const int ready = ::poll(&entry, 1, static_cast<int>(std::min<long long>(left + 1, 1 << 30)));
    if (ready > 0) return Status::success();
    if (ready < 0 && errno != EINTR) return system_status(doing, errno);
  }
}

void AgentStore::receive() {
  char bytes[16384];
  while (broken_.empty()) {
    const ssize_t got = ::recv(socket_.get(), bytes, sizeof bytes, MSG_DONTWAIT);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0)
      return break_off(got == 0 ? "the agent closed the connection" : errno_text(errno));
    const bool is_whole = parser_.feed({bytes, static_cast<std::size_t>(got)});
    wipe(bytes, static_cast<std::size_t>(got));  // the job's key may have been among them
    if (!is_whole) return break_off("the agent sent a broken frame");
    keep_events();
  }
}

void AgentStore::keep_events() {
  Frame frame;
  while (parser_.next(&frame)) {
    const auto type = static_cast<Type>(frame.type);
    if (type != Type::kEvent && type != Type::kSilence) {
      replies_.push_back(std::move(frame));
    } else if (!take_event(frame)) {
      return break_off("the agent sent a broken event");
    }
  }
}

bool AgentStore::take_event(const Frame& frame) {
  rendezvous::Event lost;
  rendezvous::Silence silence;
  if (frame.type == static_cast<std::uint8_t>(Type::kSilence)) {
    if (!decode(frame.payload, &silence)) return false;
    keep({-1,
          {},
          silence.allowed ? PeerEvent::Kind::kSilenceAllowed : PeerEvent::Kind::kSilenceOver});
    return true;
  }
  if (!decode(frame.payload, &lost)) return false;
  PeerEvent event{static_cast<int>(lost.rank), printable(lost.reason)};
  if (loss_.empty()) loss_ = name_of(event.rank) + " " + event.reason;
  keep(std::move(event));
  return true;
}

void AgentStore::keep(PeerEvent event) {
  events_.push_back(std::move(event));
  const std::uint64_t one = 1;
  HV_CHECK(::write(kept_.get(), &one, sizeof one) == sizeof one, "an eventfd counts");
}

// The socket stays open (its number may still be watched) but is polled no more: it would be
// readable for ever.
void AgentStore::break_off(const std::string& reason) {
  if (!broken_.empty()) return;
  broken_ = reason;
  ::epoll_ctl(readiness_.get(), EPOLL_CTL_DEL, socket_.get(), nullptr);
}

Status AgentStore::broken(const std::string& doing) const {
  return {StatusCode::kSystem,
          doing + ": the agent at " + printable(name_) + " is out of reach: " + broken_};
}

Status AgentStore::put(const std::string& key, const std::string& value) {
  const std::string doing = "publish '" + printable(key) + "'";
  if (key.size() > rendezvous::kMaxKeyBytes || value.size() > rendezvous::kMaxValueBytes) {
    return {StatusCode::kArgument, doing + ": key or value is too long"};
  }
  return send(rendezvous::Put{key, value}, doing);
}

Status AgentStore::fence(std::chrono::milliseconds timeout) {
  const std::string doing = "meet the other ranks";
  const TimePoint deadline = now() + timeout;
  if (Status status = send(rendezvous::Fence{++fences_}, doing); !status.ok()) return status;
  rendezvous::FenceDone done;
  if (Status status = await(&done, doing, deadline, true); !status.ok()) return status;
  if (done.number == fences_) return Status::success();
  break_off("it answered fence " + std::to_string(done.number) + " instead of " +
            std::to_string(fences_));
  return broken(doing);
}

Status AgentStore::get(int rank, const std::string& key, std::string* value) {
  const std::string doing = "ask what " + name_of(rank) + " published as '" + printable(key) + "'";
  if (Status status = send(rendezvous::Get{static_cast<std::uint32_t>(rank), key}, doing);
      !status.ok())
    return status;
  rendezvous::Value answer;
  if (Status status = await(&answer, doing, now() + timeout_, false); !status.ok()) {
    break_off(status.message);  // a late answer would be taken for the next question's
    return status;
  }
  if (!answer.found) {
    // Asked after a fence, so that rank was not among those who came to it.
    return {
        StatusCode::kPeerLost,
        doing + ": " + (loss_.empty() ? "nothing; it has ended, or runs another libhvrun" : loss_)};
  }
  *value = std::move(answer.value);
  return Status::success();
}

Status AgentStore::job_key(JobKey* key) {
  *key = key_;
  return Status::success();
}

void AgentStore::report(const RankReport& what) {
  std::visit([this](const auto& one) { tell(one); }, what);
}

void AgentStore::tell(const PeerLost& lost) {
  warn_unless(send(rendezvous::Lost{static_cast<std::uint32_t>(lost.rank), lost.reason},
                   "report a lost rank"));
}

// The next ones tell these, too: a training does not wait for an agent that does not read, and
// hears of its end elsewhere.
void AgentStore::tell(const wire::StepTimes& times) { send_or_pass_over(rendezvous::Steps{times}); }

// Whoever waits has warned of it, too.
void AgentStore::tell(const wire::TensorStall& stall) {
  send_or_pass_over(rendezvous::Stalled{stall});
}

void AgentStore::tell(const Leaving&) { warn_unless(send(rendezvous::Goodbye{}, "say goodbye")); }

template <class Message>
void AgentStore::send_or_pass_over(const Message& message) {
  if (!broken_.empty()) return;
  const std::string frame = encode_frame_of(message);
  const ssize_t sent =
      ::send(socket_.get(), frame.data(), frame.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (sent < 0) return break_off(errno_text(errno));
  // What has begun must be finished, or nothing after it could be read.
  const auto begun = static_cast<std::size_t>(sent);
  const Status status =
      send_all(socket_.get(), frame.data() + begun, frame.size() - begun, timeout_);
  if (!status.ok()) break_off(status.message);
}

bool AgentStore::next_event(PeerEvent* event) {
  receive();
  if (events_.empty()) return false;
  *event = std::move(events_.front());
  events_.pop_front();
  std::uint64_t count = 0;
  if (events_.empty())
    HV_CHECK(::read(kept_.get(), &count, sizeof count) == sizeof count, "the eventfd was set");
  return true;
}

}  // namespace hv
