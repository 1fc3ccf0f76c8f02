// SPDX-License-Identifier: Apache-2.0
#include "launcher/commands/fresh_file.h"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "src/base/error.h"
#include "tests/unit/temporary_folder.h"

namespace hv::launcher {
namespace {

std::string content(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
}

std::string refusal(const std::string& path) {
  try {
    const FreshFile file("--picture", path);
  } catch (const Error& error) {
    return std::string(error.what()) + " | " + error.hint();
  }
  return "";
}

TEST_CASE("a fresh file replaces the old one when it is complete, and leaves no other") {
  const tests::TemporaryFolder folder;
  const std::string path = folder / "a.svg";
  std::ofstream(path) << "old";
  {
    FreshFile file("--picture", path);
    CHECK(content(path) == "old");
    file.write("new");
  }
  CHECK(content(path) == "new");
  CHECK(files_in(folder.path()) == 1);
}

TEST_CASE("a fresh file that is not written changes nothing") {
  const tests::TemporaryFolder folder;
  { const FreshFile file("--picture", folder / "a.svg"); }
  CHECK(files_in(folder.path()) == 0);
  FreshFile none("--picture", "");
  none.write("nothing");
}

TEST_CASE("a fresh file behind a link replaces what the link leads to") {
  const tests::TemporaryFolder folder;
  std::ofstream(folder / "real") << "old";
  REQUIRE(::symlink("real", (folder / "link").c_str()) == 0);
  FreshFile("--picture", folder / "link").write("new");
  CHECK(content(folder / "real") == "new");
  CHECK(std::filesystem::is_symlink(folder / "link"));
}

TEST_CASE("a fresh file is refused where it cannot be, or would replace what is no plain file") {
  const tests::TemporaryFolder folder;
  CHECK(refusal("-").find("standard output") != std::string::npos);
  CHECK(refusal(folder / "no/a.svg")
            .find("for --picture: No such file or directory | name a file "
                  "in a folder that exists") != std::string::npos);
  CHECK(refusal(folder.path()).find("no plain file") != std::string::npos);
  CHECK(refusal("/dev/null").find("no plain file") != std::string::npos);
  CHECK(files_in(folder.path()) == 0);
}

TEST_CASE("a fresh file whose place is gone is told, and not left") {
  const tests::TemporaryFolder folder;
  FreshFile file("--picture", folder.folder("b") + "/a.svg");
  std::filesystem::remove_all(folder / "b");
  CHECK_THROWS_AS(file.write("new"), Error);
}

}  // namespace
}  // namespace hv::launcher
