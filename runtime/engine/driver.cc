// The seat, the callers and the engine thread.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/driver.h"

#include <sched.h>
#include <sys/prctl.h>

#include <algorithm>

#include "runtime/transport/io_thread.h"

namespace hv::runtime {
namespace {

// The engine thread looks up by itself this often even if nothing rings: cheap, and bounds any
// missed wake.
constexpr Duration kIdleLook = std::chrono::seconds(1);
// Else Linux adds 50 us to each sleep, and what is polled is asked every 20.
constexpr unsigned long kTimerSlackNs = 1000;
constexpr Duration kShortestPark = std::chrono::milliseconds(1);
constexpr Duration kLongestPark = std::chrono::milliseconds(128);

}  // namespace

// Whoever makes it has taken the seat.
class Driver::Seat {
 public:
  explicit Seat(Driver& driver) : driver_(driver) {}
  ~Seat() { driver_.release_seat(); }
  Seat(const Seat&) = delete;
  Seat& operator=(const Seat&) = delete;

 private:
  Driver& driver_;
};

class Driver::Visit {
 public:
  explicit Visit(Driver& driver) : driver_(driver) { driver_.callers_.fetch_add(1); }
  ~Visit() { driver_.leave(); }
  Visit(const Visit&) = delete;
  Visit& operator=(const Visit&) = delete;

 private:
  Driver& driver_;
};

Driver::Driver(Engine& engine, Doorbell& doorbell, const PatienceConfig& patience)
    : engine_(engine),
      doorbell_(doorbell),
      patience_(patience),
      serving_patience_({Duration::zero(), patience.yield}),
      thread_(start_quiet_thread([this] { run(); })) {}

Driver::~Driver() {
  is_stopping_ = true;
  wake();  // a short park ends by itself
  thread_.join();
}

bool Driver::take_seat(const std::atomic<bool>& done, TimePoint deadline) {
  if (!is_seat_taken_.exchange(true)) return true;
  doorbell_.ring();  // whoever has it may sleep at the bell and not know of our work
  seat_waiters_.fetch_add(1);
  std::unique_lock lock(seat_mutex_);
  bool is_ours = false;
  const auto is_over = [&] {
    if (done.load(std::memory_order_acquire)) return true;
    is_ours = !is_seat_taken_.exchange(true);
    return is_ours;
  };
  if (deadline == TimePoint::max()) {
    seat_changed_.wait(lock, is_over);
  } else {
    seat_changed_.wait_until(lock, deadline, is_over);
  }
  lock.unlock();
  seat_waiters_.fetch_sub(1);
  return is_ours;
}

void Driver::release_seat() {
  is_seat_taken_.store(false);
  tell_waiters();
}

// A waiter counts itself before it looks at the seat; we change the seat before we look at the
// count.
void Driver::tell_waiters() {
  if (seat_waiters_.load() == 0) return;
  { const std::lock_guard lock(seat_mutex_); }
  seat_changed_.notify_all();
}

template <class Done>
void Driver::drive(Done done, TimePoint deadline) {
  patience_.renew();
  for (;;) {
    const std::uint32_t seen = doorbell_.value();
    const TimePoint time = now();
    patience_.look(time);
    const Engine::Step step = engine_.step(time);
    if (step.has_completed) tell_waiters();
    if (done() || time >= deadline) return;
    if (step.has_progressed) {
      patience_.renew();
    } else if (patience_.linger(time)) {
      continue;
    } else if (engine_.attention() >= Attention::kDriven) {
      ::sched_yield();
    } else {
      doorbell_.wait(seen, std::min({deadline, engine_.next_look(), time + kIdleLook}));
    }
  }
}

bool Driver::wait(const std::atomic<bool>& done, TimePoint deadline) {
  const auto is_done = [&done] { return done.load(std::memory_order_acquire); };
  if (is_done()) return true;
  const Visit visit(*this);
  while (!is_done() && take_seat(done, deadline)) {
    const Seat seat(*this);
    drive(is_done, deadline);
    if (now() >= deadline) break;
  }
  return is_done();
}

bool Driver::wait_until_finished(TimePoint deadline) {
  const Visit visit(*this);
  const std::atomic<bool> never{false};
  if (!take_seat(never, deadline)) return false;
  const Seat seat(*this);
  drive([this] { return engine_.is_finished(); }, deadline);
  if (!engine_.is_finished()) return false;
  engine_.hand_over_fabric();
  return true;
}

// The last caller to leave hands what is still in flight to the engine thread.
void Driver::leave() {
  visits_.fetch_add(1);
  if (callers_.fetch_sub(1) == 1 && (engine_.has_work() || engine_.is_flushing())) wake();
}

void Driver::wake() {
  doorbell_.ring();
  if (!is_parked_for_long_.load()) return;
  {
    const std::lock_guard lock(park_mutex_);
    is_called_ = true;
  }
  park_changed_.notify_one();
}

void Driver::run() {
  (void)::prctl(PR_SET_TIMERSLACK, kTimerSlackNs);
  std::uint32_t seen_visits = visits_;
  Duration parked = kShortestPark;
  while (!is_stopping_) {
    const std::uint32_t visits = visits_;
    const bool was_visited = visits != seen_visits;
    seen_visits = visits;
    if (was_visited || has_caller()) {
      parked = was_visited ? kShortestPark : std::min(2 * parked, kLongestPark);
      park(parked);
    } else {
      serve();
    }
  }
}

void Driver::park(Duration limit) {
  std::unique_lock lock(park_mutex_);
  is_parked_for_long_ = limit > kShortestPark;
  // Asked anew now that callers can see us parked: one that left just before would have woken
  // nobody.
  if (!is_parked_for_long_ || has_caller()) {
    park_changed_.wait_for(lock, limit, [this] { return is_called_ || is_stopping_.load(); });
  }
  is_parked_for_long_ = false;
  is_called_ = false;
}

// Where there is nothing to serve any more: at the bell unread sockets would wake us for ever.
void Driver::park_until_called() {
  std::unique_lock lock(park_mutex_);
  is_parked_for_long_ = true;
  park_changed_.wait(lock, [this] { return is_called_ || is_stopping_.load(); });
  is_parked_for_long_ = false;
  is_called_ = false;
}

// What is launching now is over before a sleeper would be awake.
bool Driver::yield_to_launch() const {
  if (engine_.attention() < Attention::kClose) return false;
  ::sched_yield();
  return true;
}

// Steps as long as nobody waits and something moves. *seen: the bell before the last step; returns
// when the next is due.
TimePoint Driver::step_while_unvisited(std::uint32_t* seen) {
  serving_patience_.renew();
  Engine::Step step{true, false};
  TimePoint time = now();
  while (!has_caller() && !is_stopping_ &&
         (step.has_progressed || serving_patience_.linger(time) || yield_to_launch())) {
    *seen = doorbell_.value();
    time = now();
    serving_patience_.look(time);
    step = engine_.step(time);
    if (step.has_completed) tell_waiters();
    if (step.has_progressed) serving_patience_.renew();
  }
  return std::min(engine_.next_look(), time + kIdleLook);
}

// Drives as long as nobody waits; goes to sleep at the bell without the seat.
void Driver::serve() {
  if (has_caller() || is_seat_taken_.exchange(true)) {
    park(kShortestPark);
    return;
  }
  std::uint32_t seen = doorbell_.value();
  TimePoint next = now();
  bool is_over = false;
  {
    const Seat seat(*this);
    next = step_while_unvisited(&seen);
    is_over = engine_.is_finished() && !engine_.is_flushing();
  }
  if (is_over) return park_until_called();
  if (!has_caller() && !is_stopping_) doorbell_.wait(seen, next);
}

}  // namespace hv::runtime
