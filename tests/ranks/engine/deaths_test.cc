// A process of a job is killed in the middle of an operation, of each kind: every other one is told
// which, and nobody waits for ever.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/mman.h>

#include <array>
#include <atomic>
#include <fstream>
#include <thread>

#include "tests/ranks/engine/processes.h"

using namespace hv;
using namespace hv::runtime;

namespace {

constexpr int kRanks = 3, kVictim = 1;
constexpr int kRoundsBefore = 4;  // the death
constexpr std::int64_t kRows = 3 << 15;

// One call, or several at once, that take all ranks; the first error.
using Operate = std::function<Status(Context&, int round)>;

struct Case {
  const char* name;
  Operate operate;
  int rounds_before = kRoundsBefore;
};

// Several at once.
Status run_all(Context& context, const std::vector<hvrun_request>& requests) {
  std::vector<OperationPtr> operations;
  for (const hvrun_request& request : requests) {
    std::uint64_t handle = 0;
    const Status status = read_request(&request, kRanks, &operations.emplace_back());
    if (!status.ok()) return status;
    if (Status refusal = context.enqueue(operations.back(), &handle); !refusal.ok()) return refusal;
  }
  Status first;
  for (const OperationPtr& operation : operations) {
    const Status status = context.wait(*operation, TimePoint::max());
    if (first.ok()) first = status;
  }
  return first;
}

hvrun_request of_rows(hvrun_operation operation, const char* name, std::vector<float>& rows) {
  hvrun_request request = allreduce_request(name, &kRows, rows.data(), nullptr);
  request.operation = operation;
  if (operation != HVRUN_ALLREDUCE && operation != HVRUN_REDUCESCATTER)
    request.reduction = static_cast<hvrun_reduction>(0);
  return request;
}

// An operation of that kind with as many rows on each rank.
template <hvrun_operation operation>
Status run_one(Context& context, int) {
  std::vector<float> rows(kRows, 1);
  return run_in(context, of_rows(operation, "rows", rows));
}

// Added in every even round, removed in the next.
Status change_sets(Context& context, int round) {
  static std::uint32_t set = 0;
  return round % 2 == 0 ? context.add_process_set({0, kVictim}, &set)
                        : context.remove_process_set(set);
}

Status join(Context& context, int) {
  hvrun_request request = HVRUN_REQUEST_INIT;
  request.operation = HVRUN_JOIN;
  return run_in(context, request);
}

Status reduce_group(Context& context, int) {
  std::vector<float> first(kRows, 1), second(kRows, 1);
  std::vector<hvrun_request> requests{of_rows(HVRUN_ALLREDUCE, "a", first),
                                      of_rows(HVRUN_ALLREDUCE, "b", second)};
  for (hvrun_request& request : requests) {
    request.group = 7;
    request.group_size = 2;
  }
  return run_all(context, requests);
}

Status reduce_by_adasum(Context& context, int) {
  std::vector<float> rows(kRows, 1);
  hvrun_request request = of_rows(HVRUN_ALLREDUCE, "rows", rows);
  request.reduction = HVRUN_ADASUM;
  return run_in(context, request);
}

Status reduce_sparse(Context& context, int) {
  const std::int64_t shape[2] = {kRows / 8, 8};
  std::vector<float> rows(kRows, 1);
  const std::vector<std::int64_t> indices(kRows / 8, 1);
  hvrun_request request = of_rows(HVRUN_SPARSE_ALLREDUCE, "rows", rows);
  request.reduction = HVRUN_SUM;
  request.ndim = 2;
  request.shape = shape;
  request.index_type = HVRUN_INT64;
  request.indices = indices.data();
  return run_in(context, request);
}

Status meet(Context& context, int) { return run_in(context, barrier_request()); }

// Adds the set that the victim is not in; then the others work in it alone.
Status without_victim(Context& context, int round, Status (*work)(Context&, std::uint32_t)) {
  static std::uint32_t set = 0;
  if (round == 0) return context.add_process_set({0, 2}, &set);
  return context.identity().rank == kVictim ? Status::success() : work(context, set);
}

Status reduce_without_victim(Context& context, int round) {
  return without_victim(context, round, [](Context& member, std::uint32_t set) {
    std::vector<float> rows(kRows, 1);
    hvrun_request request = of_rows(HVRUN_ALLREDUCE, "rows", rows);
    request.process_set = set;
    return run_in(member, request);
  });
}

// Both wait for what neither sends.
Status receive_without_victim(Context& context, int round) {
  if (round > 0 && round < kRoundsBefore) return Status::success();
  return without_victim(context, round, [](Context& member, std::uint32_t set) {
    std::vector<float> rows(kRows);
    hvrun_request request = of_rows(HVRUN_RECEIVE, "never", rows);
    request.output = rows.data();
    request.input = nullptr;
    request.root = member.identity().rank == 0 ? 1 : 0;  // a place in the set
    request.process_set = set;
    return run_in(member, request);
  });
}

// To the next rank, and from the one before.
Status pass_on(Context& context, int) {
  const int rank = context.identity().rank, before = (rank + kRanks - 1) % kRanks;
  const std::string to = "from " + std::to_string(rank), from = "from " + std::to_string(before);
  std::vector<float> mine(kRows, 1), theirs(kRows);
  std::vector<hvrun_request> requests{of_rows(HVRUN_SEND, to.c_str(), mine),
                                      of_rows(HVRUN_RECEIVE, from.c_str(), theirs)};
  requests[0].root = (rank + 1) % kRanks;
  requests[1].root = before;
  requests[1].output = theirs.data();
  return run_all(context, requests);
}

// What all processes see: in how many rounds each has been, how many have been told, and of what.
struct Board {
  std::array<std::atomic<int>, kRanks> rounds;
  std::atomic<int> told;
  std::atomic<TimePoint> killed;  // when, by the clock of all processes
};

struct SharedBoard {
  SharedBoard()
      : board(new(::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
                         -1, 0)) Board{}) {}
  ~SharedBoard() { ::munmap(board, sizeof(Board)); }
  Board* const board;
};

bool names_the_victim(const Status& status) {
  return status.code == StatusCode::kPeerLost && status.message.find("rank 1") != std::string::npos;
}

// Rounds until an error; 0 when that comes soon and names the victim, as what is asked for later
// does. The victim itself, unless it is to die on its way, comes to no round after the first ones.
int work(Context& context, const Case& test, bool is_absent, Board& board) {
  const int rank = context.identity().rank;
  for (int round = 0;; ++round) {
    board.rounds[static_cast<std::size_t>(rank)] = round;
    if (is_absent && rank == kVictim && round == test.rounds_before)
      for (;;) ::pause();
    const Status status = test.operate(context, round);
    if (status.ok()) continue;
    const Duration took = now() - board.killed.load();
    const std::int64_t one = 1;
    float value = 1;
    const Status later = run_in(context, allreduce_request("later", &one, &value, &value));
    ++board.told;
    // Whoever left now would be one more reason for the other's error.
    while (board.told < kRanks - 1) std::this_thread::yield();
    // What is freed now might still be written to by the others.
    const bool is_soon = took < kBeforeSilence;
    if (is_soon && names_the_victim(status) && names_the_victim(later) && !context.heap()) return 0;
    std::fprintf(stderr, "rank %d: after %lld ms: %s; later: %s\n", rank,
                 static_cast<long long>(took / std::chrono::milliseconds(1)),
                 status.message.c_str(), later.message.c_str());
    return is_soon ? 1 : 2;
  }
}

bool is_asleep(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string stat;
  std::getline(file, stat);
  const std::size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end, 3, ") S") == 0;
}

void kill_one_of(const JobShape& shape, const Case& test, bool is_absent) {
  CAPTURE(name_of(shape));
  const std::string operation = test.name;
  CAPTURE(operation);
  const SharedBoard shared;
  Board& board = *shared.board;
  Processes job(shape, [&](Context& context) { return work(context, test, is_absent, board); });
  const TimePoint deadline = now() + std::chrono::seconds(60);
  for (int rank = 0; rank < kRanks; ++rank) {
    const auto has_come = [&] {
      const auto place = static_cast<std::size_t>(rank);
      return board.rounds[place] >= test.rounds_before &&
             (!is_absent || is_asleep(job.children[place]));  // in its wait
    };
    while (!has_come()) {
      REQUIRE(now() < deadline);
      std::this_thread::yield();
    }
  }
  board.killed = now();
  ::kill(job.children[kVictim], SIGKILL);
  job.hub.announce_loss(kVictim, "ended by signal 9 (Killed)");
  while (board.told < kRanks - 1) {
    REQUIRE(now() < deadline);
    std::this_thread::yield();
  }
  CHECK(job.exit_code(2) == 0);
  CHECK(job.exit_code(0) == 0);
}

// However the dead rank stands to it.
const std::vector<Case> kKinds{{"join", join},
                               {"group", reduce_group},
                               {"reducescatter", run_one<HVRUN_REDUCESCATTER>},
                               {"alltoall", run_one<HVRUN_ALLTOALL>},
                               {"broadcast", run_one<HVRUN_BROADCAST>},
                               {"allgather", run_one<HVRUN_ALLGATHER>},
                               {"sparse allreduce", reduce_sparse},
                               {"Adasum", reduce_by_adasum},
                               {"barrier", meet},
                               {"send", pass_on}};

// Of those kinds, and of these.
void kill_in_each(std::vector<Case> cases, bool is_absent) {
  cases.insert(cases.end(), kKinds.begin(), kKinds.end());
  for (const JobShape& shape : {JobShape{3}, JobShape{1, 2}})
    for (const Case& one : cases) kill_one_of(shape, one, is_absent);
}

}  // namespace

// What comes for a set is an error, too, though the dead one is not in it: the whole job has lost a
// rank (hvrun.3, HVRUN_ERROR_PEER_LOST).
TEST_CASE("a process that is killed before it comes to an operation is named to all that wait") {
  kill_in_each({{"add", change_sets},
                {"remove", change_sets, 5},
                {"receive in another set", receive_without_victim}},
               true);
}

TEST_CASE("a process that is killed in the middle of an operation is named to all others") {
  kill_in_each(
      {{"add and remove", change_sets}, {"allreduce in another set", reduce_without_victim}},
      false);
}
