// The room's output directory: raw files, FIFOs that block, files that cannot be written.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <functional>
#include <future>
#include <thread>

#include "launcher/output/output_directory.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "tests/unit/output/room_fixture.h"

using namespace std::chrono_literals;
using namespace hv::launcher;

TEST_CASE("the output directory holds raw bytes, unlabelled, beside the console") {
  Pipe out, errors;
  Folder folder;
  Owner owner;
  OutputOptions options = onto(out, errors);
  options.directory = folder.path() + "/made/for/this";
  {
    OutputRoom room(options, owner.written(), owner.broken());
    room.add(chunk(0, 1, "a\nb"));
    room.add(chunk(0, 1, std::string("\0\xff\r", 3), true));
    room.add(chunk(12, 2, "err\n"));
    room.add(chunk(12, 1, "", true));
    owner.wait_written(0, 6);
    room.finish();
  }
  CHECK(folder.text_of("made/for/this/rank.0/stdout") == std::string("a\nb\0\xff\r", 6));
  CHECK(folder.text_of("made/for/this/rank.12/stderr") == "err\n");
  CHECK(folder.text_of("made/for/this/rank.12/stdout").empty());
  CHECK(std::filesystem::exists(folder.path() + "/made/for/this/rank.0/stderr"));
  CHECK(out.read_all() == std::string("[0] a\n[0] b\0\xff\r\n", 15));
}

namespace {

// So many descriptors at most, as long as it lives.
class DescriptorLimit {
 public:
  explicit DescriptorLimit(rlim_t most) {
    REQUIRE(::getrlimit(RLIMIT_NOFILE, &before_) == 0);
    const rlimit limit{most, before_.rlim_max};
    REQUIRE(::setrlimit(RLIMIT_NOFILE, &limit) == 0);
  }
  ~DescriptorLimit() { ::setrlimit(RLIMIT_NOFILE, &before_); }

 private:
  rlimit before_{};
};

}  // namespace

TEST_CASE(
    "more files than may be open at a time are written nevertheless, and overwritten by the next "
    "job") {
  Pipe out, errors;
  Folder folder;
  Owner owner;
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  const DescriptorLimit limit(250);
  for (const std::string word : {"first", "second"}) {
    OutputRoom room(options, owner.written(), owner.broken());
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t rank = 0; rank < 300; ++rank) {
        room.add(chunk(rank, 2, word + std::to_string(round) + "\n"));
      }
      room.flush();
      std::size_t console_bytes = 300 * (word.size() + 2);
      for (int rank = 0; rank < 300; ++rank) console_bytes += 3 + std::to_string(rank).size();
      CHECK(errors.read(console_bytes).size() == console_bytes);
    }
    room.finish();
  }
  CHECK(owner.breakages() == 0);
  for (const int rank : {0, 150, 299}) {
    CHECK(folder.text_of("rank." + std::to_string(rank) + "/stderr") ==
          "second0\nsecond1\nsecond2\n");
  }
}

TEST_CASE("a FIFO without reader among the files holds up only its own rank") {
  Pipe out, errors;
  Folder folder;
  Owner owner;
  REQUIRE(::mkdir((folder.path() + "/rank.0").c_str(), 0777) == 0);
  REQUIRE(::mkfifo((folder.path() + "/rank.0/stdout").c_str(), 0666) == 0);
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  OutputRoom room(options, owner.written(), owner.broken());
  room.add(chunk(0, 1, "blocked\n"));
  room.add(chunk(0, 2, "not blocked\n"));
  room.add(chunk(1, 1, "neither\n"));
  owner.wait_written(1, 8);
  owner.wait_written(0, 12);
  CHECK(folder.text_of("rank.1/stdout") == "neither\n");
  const auto begun = hv::now();
  CHECK_FALSE(room.finish_within(50ms));
  CHECK(hv::now() - begun < 30s);
  CHECK(owner.written_of(0) == 12);
}

TEST_CASE("flush_then waits for a FIFO too") {
  Pipe out, errors;
  Folder folder;
  Owner owner;
  REQUIRE(::mkdir((folder.path() + "/rank.0").c_str(), 0777) == 0);
  REQUIRE(::mkfifo((folder.path() + "/rank.0/stdout").c_str(), 0666) == 0);
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  OutputRoom room(options, owner.written(), owner.broken());
  std::promise<void> written;
  auto is_written = written.get_future();
  room.add(chunk(0, 1, "x\n"));
  room.flush_then([&] { written.set_value(); });
  for (std::size_t round = 1; round <= 2;
       ++round) {  // after the second, the thread of all files is past the flush
    room.add(chunk(1, 1, "y\n"));
    owner.wait_written(1, 2 * round);
  }
  CHECK(is_written.wait_for(0s) == std::future_status::timeout);
  std::thread reader([&] { CHECK(folder.text_of("rank.0/stdout") == "x\n"); });
  is_written.get();
  room.finish();
  reader.join();
}

TEST_CASE("a FIFO with a reader gets every byte before finish returns") {
  Pipe out, errors;
  Folder folder;
  Owner owner;
  const std::string fifo = folder.path() + "/rank.0/stdout";
  REQUIRE(::mkdir((folder.path() + "/rank.0").c_str(), 0777) == 0);
  REQUIRE(::mkfifo(fifo.c_str(), 0666) == 0);
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  std::string got;
  std::thread reader([&] { got = folder.text_of("rank.0/stdout"); });
  OutputRoom room(options, owner.written(), owner.broken());
  room.add(chunk(0, 1, "through the FIFO\n"));
  room.flush();
  owner.wait_written(0, 17);
  room.finish();
  reader.join();
  CHECK(got == "through the FIFO\n");
}

TEST_CASE("a file that cannot be opened is told by name, and its rank's bytes are let go") {
  Pipe out, errors;
  Folder folder;
  Owner owner;
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  OutputRoom room(options, owner.written(), owner.broken());
  // A directory in the file's place, made after the start.
  std::filesystem::create_directories(folder.path() + "/rank.0/stdout");
  room.add(chunk(0, 1, "x\n"));
  const Owner::Breakage breakage = owner.wait_broken();
  CHECK(breakage.errno_value == EISDIR);
  CHECK(breakage.stream == 0);
  CHECK(breakage.what == "write output to " + folder.path() + "/rank.0/stdout");
  owner.wait_written(0, 2);
  room.finish();
}

TEST_CASE("an output directory that cannot be made is an error before anything starts") {
  Pipe out, errors;
  Owner owner;
  OutputOptions options = onto(out, errors);
  options.directory = "/dev/null/below";
  try {
    OutputRoom room(options, owner.written(), owner.broken());
    FAIL("no error");
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    CHECK(std::string(error.what()).find("/dev/null/below") != std::string::npos);
    CHECK(std::string(error.what()).find("Not a directory") != std::string::npos);
  }
}

namespace {

// plant: called once the room has accepted the directory.
std::string write_failure_in(const Folder& folder, int errno_value,
                             const std::function<void()>& plant) {
  Pipe out, errors;
  Owner owner;
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  OutputRoom room(options, owner.written(), owner.broken());
  plant();
  room.add(chunk(0, 1, "x\n"));
  const Owner::Breakage breakage = owner.wait_broken();
  CHECK(breakage.errno_value == errno_value);
  owner.wait_written(0, 2);
  room.finish();
  return breakage.what.substr(breakage.what.find("/rank.0"));
}

// Why a job with that output directory does not start.
std::string refusal_of(const Folder& folder) {
  Pipe out, errors;
  Owner owner;
  OutputOptions options = onto(out, errors);
  options.directory = folder.path();
  try {
    OutputRoom room(options, owner.written(), owner.broken());
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("output is not written through a link that somebody has put into the directory") {
  const Folder folder;
  const std::string rank = folder.path() + "/rank.0";
  std::filesystem::create_directories(folder.path() + "/mine");
  SUBCASE("in a rank's place") {
    const auto plant = [&] { std::filesystem::create_directory_symlink("mine", rank); };
    CHECK(write_failure_in(folder, ELOOP, plant) ==
          "/rank.0/stdout, whose directory is a symbolic link");
    CHECK(refusal_of(folder) == "write output to " + rank + ": it is a symbolic link");
  }
  SUBCASE("in a file's place") {
    std::filesystem::create_directories(rank);
    std::filesystem::create_symlink("../mine/stdout", rank + "/stdout");
    CHECK(refusal_of(folder) == "write output to " + rank + "/stdout: it is a symbolic link");
    std::filesystem::remove(rank + "/stdout");
    const auto plant = [&] { std::filesystem::create_symlink("../mine/stdout", rank + "/stdout"); };
    CHECK(write_failure_in(folder, ELOOP, plant) == "/rank.0/stdout, a symbolic link");
  }
  CHECK(std::filesystem::is_empty(folder.path() + "/mine"));
}

TEST_CASE("output is not written into a rank's directory of another user") {
  if (::geteuid() != 0) return;  // cannot give a directory away
  const Folder folder;
  const std::string rank = folder.path() + "/rank.0";
  const auto plant = [&] {
    std::filesystem::create_directories(rank);
    REQUIRE(::chown(rank.c_str(), 65534, 65534) == 0);
  };
  CHECK(write_failure_in(folder, EPERM, plant) ==
        "/rank.0/stdout, whose directory other users may change");
  CHECK(refusal_of(folder) == "write output to " + rank + ": it belongs to another user");
  // Nor where that user owns the output directory as well.
  REQUIRE(::chown(folder.path().c_str(), 65534, 65534) == 0);
  CHECK(refusal_of(folder) == "write output to " + rank + ": it belongs to another user");
}

TEST_CASE("output is not written to a file of another user") {
  if (::geteuid() != 0) return;  // cannot give a file away
  const Folder folder;
  const std::string file = folder.path() + "/rank.0/stdout";
  const auto plant = [&] {
    std::filesystem::create_directories(folder.path() + "/rank.0");
    std::ofstream(file) << "theirs";
    REQUIRE(::chown(file.c_str(), 65534, 65534) == 0);
  };
  CHECK(write_failure_in(folder, EPERM, plant) == "/rank.0/stdout, which belongs to another user");
  CHECK(folder.text_of("rank.0/stdout") == "theirs");
  CHECK(refusal_of(folder) == "write output to " + file + ": it belongs to another user");
}

TEST_CASE("output is not written into a rank's directory that other users may change") {
  using std::filesystem::perms;
  for (const perms others : {perms::group_write, perms::others_write}) {
    const Folder folder;
    const std::string rank = folder.path() + "/rank.0";
    const auto plant = [&] {
      std::filesystem::create_directories(rank);
      std::filesystem::permissions(rank, perms::owner_all | others);
    };
    CHECK(write_failure_in(folder, EPERM, plant) ==
          "/rank.0/stdout, whose directory other users may change");
    CHECK(refusal_of(folder) == "write output to " + rank + ": it may be changed by other users");
  }
}

TEST_CASE("where a rank's directory or file should be lies no other thing") {
  const Folder folder;
  std::ofstream(folder.path() + "/rank.map").close();  // the user's
  std::filesystem::create_directories(folder.path() + "/rank.0/stdout");
  CHECK(refusal_of(folder) ==
        "write output to " + folder.path() + "/rank.0/stdout: it is a directory");
  std::filesystem::remove_all(folder.path() + "/rank.0");
  CHECK(refusal_of(folder).empty());
  std::ofstream(folder.path() + "/rank.1").close();
  CHECK(refusal_of(folder) == "write output to " + folder.path() + "/rank.1: it is no directory");
}

TEST_CASE("an output directory is not found through another user's link") {
  if (::geteuid() != 0) return;  // cannot give a link away
  const Folder folder;
  std::filesystem::create_directories(folder.path() + "/mine");
  std::filesystem::create_directory_symlink("mine", folder.path() + "/logs");
  const auto refusal = [&] {
    try {
      const OutputDirectory directory(folder.path() + "/logs");
    } catch (const hv::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(refusal() == "");  // this user's own
  REQUIRE(::lchown((folder.path() + "/logs").c_str(), 65534, 65534) == 0);
  CHECK(refusal() ==
        "write output to " + folder.path() + "/logs: it is a symbolic link of another user");
  CHECK(std::filesystem::is_empty(folder.path() + "/mine"));
}

TEST_CASE("directories that are made for output are this user's alone") {
  const mode_t umask_before = ::umask(0);
  const Folder folder;
  for (const char* name : {"/new/logs", "/new/slash/"}) {
    Pipe out, errors;
    Owner owner;
    OutputOptions options = onto(out, errors);
    options.directory = folder.path() + name;
    OutputRoom room(options, owner.written(), owner.broken());
    room.add(chunk(0, 1, "x\n"));
    owner.wait_written(0, 2);
    room.finish();
    const std::string above = folder.path() + "/new";
    for (const std::string& made : {above, options.directory, options.directory + "/rank.0"}) {
      struct stat status {};
      REQUIRE(::stat(made.c_str(), &status) == 0);
      CHECK((status.st_mode & 07777) == 0700);
    }
  }
  ::umask(umask_before);
}
