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
constexpr std::int64_t kRows = 3 << 15;

// One call, or several at once, that take all ranks; the first error.
using Operate = std::function<Status(Context&, int round)>;

struct Case {
  const char* name;
  Operate operate;
  int rounds_before = 4;  // the death
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

Status reducescatter(Context& context, int) {
  std::vector<float> rows(kRows, 1);
  return run_in(context, of_rows(HVRUN_REDUCESCATTER, "rows", rows));
}

Status alltoall(Context& context, int) {
  std::vector<float> rows(kRows, 1);
  return run_in(context, of_rows(HVRUN_ALLTOALL, "rows", rows));
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

// What all processes see: in how many rounds each has been, and how many have been told.
struct Board {
  std::array<std::atomic<int>, kRanks> rounds;
  std::atomic<int> told;
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

// Rounds until an error; 0 when that names the victim, and so does what is asked for later. The
// victim itself, unless it is to die on its way, comes to no round after the first ones.
int work(Context& context, const Case& test, bool is_absent, Board& board) {
  const int rank = context.identity().rank;
  for (int round = 0;; ++round) {
    board.rounds[static_cast<std::size_t>(rank)] = round;
    if (is_absent && rank == kVictim && round == test.rounds_before)
      for (;;) ::pause();
    const Status status = test.operate(context, round);
    if (status.ok()) continue;
    const std::int64_t one = 1;
    float value = 1;
    const Status later = run_in(context, allreduce_request("later", &one, &value, &value));
    ++board.told;
    // Whoever left now would be one more reason for the other's error.
    while (board.told < kRanks - 1) std::this_thread::yield();
    // What is freed now might still be written to by the others.
    if (names_the_victim(status) && names_the_victim(later) && !context.heap()) return 0;
    std::fprintf(stderr, "rank %d: %s; later: %s\n", rank, status.message.c_str(),
                 later.message.c_str());
    return 1;
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
  INFO(test.name);
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
  ::kill(job.children[kVictim], SIGKILL);
  job.hub.announce_loss(kVictim, "ended by signal 9 (Killed)");
  CHECK(job.exit_code(2) == 0);
  CHECK(job.exit_code(0) == 0);
}

const std::vector<JobShape> kShapes{{3}, {1, 2}};

}  // namespace

TEST_CASE("a process that is killed before it comes to an operation is named to all that wait") {
  const Case cases[] = {
      {"add", change_sets},    {"remove", change_sets, 5},       {"join", join},
      {"group", reduce_group}, {"reducescatter", reducescatter}, {"alltoall", alltoall},
      {"send", pass_on}};
  for (const JobShape& shape : kShapes)
    for (const Case& one : cases) kill_one_of(shape, one, true);
}

TEST_CASE("a process that is killed in the middle of an operation is named to all others") {
  const Case cases[] = {{"add and remove", change_sets}, {"join", join},
                        {"group", reduce_group},         {"reducescatter", reducescatter},
                        {"alltoall", alltoall},          {"send", pass_on}};
  for (const JobShape& shape : kShapes)
    for (const Case& one : cases) kill_one_of(shape, one, false);
}
