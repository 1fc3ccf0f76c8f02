// Ranks of the stand-in for NCCL that are processes of their own: this program again, with a part
// to play in its environment.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/fake_nccl/rank.h"

using namespace hv;
using namespace hv::nccl;

namespace {

constexpr const char* kPart = "HVRUN_TEST_NCCL_PART";
constexpr const char* kId = "HVRUN_TEST_NCCL_ID";  // in letters, two a byte
constexpr const char* kRank = "HVRUN_TEST_NCCL_RANK";
constexpr const char* kRanks = "HVRUN_TEST_NCCL_RANKS";

std::string letters_of(const UniqueId& id) {
  std::string text;
  for (const char byte : id.bytes) {
    const auto number = static_cast<unsigned char>(byte);
    text += {static_cast<char>('a' + number / 16), static_cast<char>('a' + number % 16)};
  }
  return text;
}

UniqueId id_of(const std::string& letters) {
  UniqueId id = {};
  for (std::size_t byte = 0; byte < sizeof id.bytes && 2 * byte + 1 < letters.size(); ++byte)
    id.bytes[byte] =
        static_cast<char>((letters[2 * byte] - 'a') * 16 + letters[2 * byte + 1] - 'a');
  return id;
}

// The processes that play these parts. ranks: those who are awaited.
std::vector<pid_t> begin(const std::vector<std::string>& parts, int ranks) {
  ::setenv(kRanks, std::to_string(ranks).c_str(), 1);
  ::setenv(kId, letters_of(make_id()).c_str(), 1);
  std::vector<pid_t> processes;
  for (const std::string& part : parts) {
    ::setenv(kPart, part.c_str(), 1);
    ::setenv(kRank, std::to_string(processes.size()).c_str(), 1);
    std::string words[] = {"unit_nccl", "--no-skip",
                           "--test-case=one of several processes plays *"};
    char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), nullptr};
    pid_t process = -1;
    REQUIRE(::posix_spawn(&process, "/proc/self/exe", nullptr, nullptr, arguments, environ) == 0);
    processes.push_back(process);
  }
  return processes;
}

// How each of them ended, as waitpid() tells it.
std::vector<int> await_end(const std::vector<pid_t>& processes) {
  std::vector<int> ends;
  for (const pid_t process : processes) {
    int end = -1;
    REQUIRE(::waitpid(process, &end, 0) == process);
    ends.push_back(end);
  }
  return ends;
}

std::vector<int> play(const std::vector<std::string>& parts) {
  return await_end(begin(parts, static_cast<int>(parts.size())));
}

void allreduce(Rank& rank, std::size_t count) {
  int* const at = rank.put(std::vector<int>(count, rank.rank + 1));
  CHECK(rank.has_launched(
      nccl_call().allreduce(at, at, count, kInt32, kSum, rank.comm, rank.stream)));
  CHECK(rank.get(at, count) == std::vector<int>(count, 3));
}

// Both come there by calls alone, whatever is on their streams.
int meet_by_calls(Rank& rank, Window* window) {
  return nccl_call().register_window(rank.comm, rank.room(4096), 4096, window, kSymmetricWindow);
}

void outlive(Rank& rank) {
  int* const at = rank.put(std::vector<int>{1});
  CHECK(rank.has_launched(nccl_call().broadcast(at, at, 1, kInt32, 0, rank.comm, rank.stream)));
  Window window = nullptr;
  meet_by_calls(rank, &window);
  int state = kSuccess;
  while (state == kSuccess || state == kInProgress)
    CHECK(nccl_call().async_error(rank.comm, &state) == kSuccess);
  CHECK(state == kRemoteError);
  CHECK(cuda_call().stream_query(rank.stream) == cuda::kNotReady);  // as NCCL's kernel it goes on
  CHECK(nccl_call().abort(rank.comm) == kSuccess);
  CHECK(cuda_call().stream_synchronize(rank.stream) == cuda::kSuccess);
}

[[noreturn]] void die(Rank& rank) {
  Window window = nullptr;
  CHECK(rank.has_launched(meet_by_calls(rank, &window)));
  ::_exit(0);
}

}  // namespace

TEST_CASE("one of several processes plays its part" * doctest::skip()) {
  const std::string part = ::getenv(kPart);
  Rank rank(std::atoi(::getenv(kRank)), std::atoi(::getenv(kRanks)));
  use_gpu(0);
  const UniqueId id = id_of(::getenv(kId));
  const int met = rank.join(id);
  if (part == "hears") {
    CHECK(met == kRemoteError);
    CHECK(nccl_call().abort(rank.comm) == kSuccess);
    return;
  }
  if (part == "is refused") {
    CHECK(met == kInvalidUsage);
    CHECK(nccl_call().abort(rank.comm) == kSuccess);
    return;
  }
  REQUIRE(met == kSuccess);
  if (part == "dies") die(rank);
  if (part == "outlives") return outlive(rank);
  allreduce(rank, part == "differs" ? 3 : 200000);
  CHECK(nccl_call().destroy(rank.comm) == kSuccess);
}

TEST_CASE("processes meet and reduce what their GPUs have") {
  for (const int end : play({"reduces", "reduces"})) CHECK(end == 0);
}

TEST_CASE("a process that dies is told, and its peers' work waits on") {
  for (const int end : play({"dies", "outlives"})) CHECK(end == 0);
}

TEST_CASE("a process that dies before all have come ends the meeting for the others") {
  const int before = nccl_call().guests();
  const std::vector<pid_t> processes = begin({"hears", "hears"}, 3);
  while (nccl_call().guests() < before + 2) std::this_thread::yield();
  REQUIRE(::kill(processes[1], SIGKILL) == 0);
  const std::vector<int> ends = await_end(processes);
  CHECK(ends[0] == 0);
  CHECK(WTERMSIG(ends[1]) == SIGKILL);
}

TEST_CASE("processes on the same GPU are refused") {
  ::setenv("HVRUN_FAKE_CUDA_UUID", "5", 1);
  for (const int end : play({"is refused", "is refused"})) CHECK(end == 0);
  ::unsetenv("HVRUN_FAKE_CUDA_UUID");
}

TEST_CASE("ranks that differ in a count end at once, where NCCL would hang") {
  for (const int end : play({"reduces", "differs"})) CHECK(end != 0);
}
