// Tests of how the tasks of a step come to one key without munge: by a file, or not at all.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/slurm_step.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "src/net/socket.h"
#include "src/rendezvous/step_key_file.h"
#include "src/wire/agent_greeting.h"
#include "tests/unit/temporary_folder.h"

using namespace hv;

namespace {

const WaitLimits kLong{std::chrono::seconds(20)}, kShort{std::chrono::milliseconds(500)};

MeetingTerms terms_of(const WaitLimits& limits) {
  UniqueFd holder;
  std::uint16_t port = 0;  // that was free a moment ago
  REQUIRE(hold_tcp_port(0, &holder, &port).ok());
  return {limits, *parse_port_range(std::to_string(port))};
}

Status open_step(int rank, const std::string& home, const MeetingTerms& terms,
                 std::unique_ptr<Exchange>* exchange) {
  const auto entries = home.empty() ? std::vector<std::string>() : std::vector{"HOME=" + home};
  return open_slurm_step({rank, 2, "7.9", "localhost"}, Environment::from_entries(entries), terms,
                         exchange);
}

std::string refused(const std::string& path) {
  JobKey key;
  const Status status = read_step_key(path, &key);
  return status.ok() ? "no error" : status.message;
}

mode_t mode_of(const std::string& path) {
  struct stat info {};
  return ::stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

constexpr const char* kNotAlone =
    " is not this user's alone; take it away, and start the step again";

}  // namespace

TEST_CASE("the file of a step's key is its user's alone, whatever lay there and the umask says") {
  const tests::TemporaryFolder home;
  const std::string path = step_key_file(Environment::from_entries({"HOME=" + home.path()}), "7.9");
  CHECK(path == home / ".hvrun-step-7.9");
  std::ofstream(path) << "of another step";
  ::chmod(path.c_str(), 0666);
  const mode_t before = ::umask(0);
  JobKey key, read;
  key.fill(7);
  CHECK(write_step_key(path, key).ok());
  ::umask(before);
  CHECK(mode_of(path) == 0600);
  REQUIRE(read_step_key(path, &read).ok());
  CHECK(key_as_text(read) == key_as_text(key));
  CHECK(std::distance(std::filesystem::directory_iterator(home.path()), {}) == 1);
}

TEST_CASE("a key that others can read or have written is refused with what to do") {
  const tests::TemporaryFolder home;
  const std::string path = home / "key";
  CHECK(refused(path) == "meet the other tasks of the step: read the key from " + path +
                             ": No such file or directory");
  JobKey key;
  key.fill(7);
  REQUIRE(write_step_key(path, key).ok());
  std::filesystem::create_symlink(path, home / "link");
  CHECK(refused(home / "link").find("read the key from " + (home / "link") + ": ") !=
        std::string::npos);
  for (const mode_t mode : {0644, 0660, 0602}) {
    ::chmod(path.c_str(), mode);
    CHECK(refused(path) == "meet the other tasks of the step: " + path + kNotAlone);
  }
  ::chmod(path.c_str(), 0600);
  CHECK(refused(path) == "no error");
  std::ofstream(path) << "short";
  CHECK(refused(path) == "meet the other tasks of the step: " + path + " holds no key");
}

TEST_CASE("another user's key is refused") {
  const tests::TemporaryFolder home;
  const std::string path = home / "key";
  JobKey key;
  key.fill(7);
  REQUIRE(write_step_key(path, key).ok());
  if (::chown(path.c_str(), 12345, 0) != 0) return;  // which takes root
  CHECK(refused(path) == "meet the other tasks of the step: " + path + kNotAlone);
}

TEST_CASE("where nothing is shared the tasks are told what starts them otherwise") {
  const char* const otherwise = "start them with 'srun --mpi=pmix ...', or with hvrun";
  std::unique_ptr<Exchange> exchange;
  const Status alone = open_step(1, "", terms_of(kShort), &exchange);
  CHECK(alone.message.find("srun has started 2 tasks that have no way to meet: ") !=
        std::string::npos);
  CHECK(alone.message.find("munge.socket.2") != std::string::npos);
  CHECK(alone.message.find(std::string("and HOME is not set; ") + otherwise) != std::string::npos);
}

TEST_CASE("a home folder that hosts do not share is told by its file, with what to do") {
  const tests::TemporaryFolder homes;
  const MeetingTerms terms = terms_of(kShort);
  Status statuses[2];
  std::vector<std::thread> ranks;
  for (int rank = 0; rank < 2; ++rank)
    ranks.emplace_back([&, rank] {
      std::unique_ptr<Exchange> exchange;
      statuses[rank] = open_step(rank, homes.folder(std::to_string(rank)), terms, &exchange);
    });
  for (std::thread& rank : ranks) rank.join();
  CHECK(statuses[0].message.find("rank 1 did not come in time") != std::string::npos);
  const std::string file = homes / "1" + "/.hvrun-step-7.9";
  CHECK(statuses[1].message.find("read the key from " + file + ": No such file") !=
        std::string::npos);
  for (const Status& status : statuses)
    CHECK(status.message.find("start the step with 'srun --mpi=pmix ...', or with hvrun") !=
          std::string::npos);
  CHECK(std::filesystem::is_empty(homes / "0"));
}

TEST_CASE("without munge the key comes from a file, whatever lay there before, that goes again") {
  const tests::TemporaryFolder home;
  // What a step of that name has left that was broken off.
  const std::string left = home / ".hvrun-step-7.9";
  std::ofstream(left) << std::string(64, 'a') << "\n";
  ::chmod(left.c_str(), 0600);
  const MeetingTerms terms = terms_of(kLong);
  Status statuses[2];
  std::vector<std::thread> ranks;
  for (int rank = 1; rank >= 0; --rank)
    ranks.emplace_back([&, rank] {
      std::unique_ptr<Exchange> exchange;
      statuses[rank] = open_step(rank, home.path(), terms, &exchange);
      std::vector<std::string> all;
      if (statuses[rank].ok()) statuses[rank] = exchange->gather(std::to_string(rank), kLong, &all);
      if (statuses[rank].ok() && all != std::vector<std::string>{"0", "1"})
        statuses[rank] = {StatusCode::kContract, "other bytes came"};
    });
  for (std::thread& rank : ranks) rank.join();
  for (const Status& status : statuses) CHECK(status.message == "");
  CHECK(std::filesystem::is_empty(home.path()));
}

TEST_CASE("rank 0's answer has the key for who asked, and nobody else") {
  JobKey key, read;
  key.fill(7);
  const std::string answer = encode_key_answer(key, "7.9 ab");
  REQUIRE(decode_key_answer(answer, "7.9 ab", &read));
  CHECK(key_as_text(read) == key_as_text(key));
  CHECK_FALSE(decode_key_answer(answer, "7.9 ac", &read));
  CHECK_FALSE(decode_key_answer(answer, "7.9 a", &read));
  CHECK_FALSE(decode_key_answer(answer.substr(1), "7.9 ab", &read));
  CHECK_FALSE(decode_key_answer("x" + answer.substr(1), "7.9 ab", &read));
}
