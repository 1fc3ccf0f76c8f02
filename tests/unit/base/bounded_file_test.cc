// Files that users name: regular ones, pipes, devices, and what the shell has opened.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/bounded_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "src/base/error.h"
#include "src/base/unique_fd.h"
#include "tests/unit/temporary_folder.h"

using hv::read_bounded_file;
using hv::tests::TemporaryFolder;

namespace {

// "what | hint"
std::string refusal_of(const std::string& path) {
  try {
    read_bounded_file(path, 100, "list", "name another");
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

}  // namespace

TEST_CASE("a file comes whole, and of one that is too long more than is allowed") {
  const TemporaryFolder folder;
  std::ofstream(folder / "small") << "a\nb";
  CHECK(read_bounded_file(folder / "small", 100, "list", "") == "a\nb");
  CHECK(read_bounded_file(folder / "small", 3, "list", "") == "a\nb");
  CHECK(read_bounded_file("/dev/zero", 1000, "list", "").size() > 1000);
  CHECK(read_bounded_file("/dev/null", 100, "list", "").empty());
}

TEST_CASE("what is not there or no file is told with the system's reason") {
  CHECK(refusal_of("/no/such") == "read list /no/such: No such file or directory | name another");
  CHECK(refusal_of("/") == "read list /: Is a directory | name another");
}

TEST_CASE("a file that this user may not read is told with how to change that") {
  if (::geteuid() == 0) return;  // who may read everything
  const TemporaryFolder folder;
  std::ofstream(folder / "closed") << "a";
  REQUIRE(::chmod((folder / "closed").c_str(), 0) == 0);
  CHECK(refusal_of(folder / "closed").find("Permission denied | make it readable") !=
        std::string::npos);
}

TEST_CASE("a named pipe is refused and not waited for") {
  const TemporaryFolder folder;
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK(refusal_of(folder / "pipe").find("it is a named pipe, whose writer may never come") !=
        std::string::npos);
}

TEST_CASE("what the shell has opened for <(...) is read to its end") {
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  const hv::UniqueFd read_end(ends[0]);
  REQUIRE(::write(ends[1], "a\nb\n", 4) == 4);
  ::close(ends[1]);
  CHECK(read_bounded_file("/dev/fd/" + std::to_string(ends[0]), 100, "list", "") == "a\nb\n");
}
