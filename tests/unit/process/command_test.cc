// Tests of src/process/command.
// SPDX-License-Identifier: Apache-2.0
#include "src/process/command.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "tests/unit/temporary_folder.h"

namespace {

// first/tool, second/tool and second/other can be run, first/plain cannot, first/other is a folder.
struct Folders {
  Folders() {
    std::filesystem::create_directories(root / "first" / "other");
    std::filesystem::create_directories(root / "second");
    for (const char* file : {"first/tool", "second/tool", "second/other", "first/plain"})
      std::ofstream(root / file) << "";
    for (const char* file : {"first/tool", "second/tool", "second/other"})
      std::filesystem::permissions(root / file, std::filesystem::perms(0755));
    std::filesystem::permissions(root / "first/plain", std::filesystem::perms(0644));
  }
  std::string operator/(const std::string& file) const { return root / file; }
  hv::tests::TemporaryFolder folder;
  std::filesystem::path root = folder.path();
};

// The program found, or "" and the reason in words.
std::string find(const std::string& name, const std::string& path, const std::string& directory,
                 std::string* reason) {
  reason->clear();
  return hv::find_program(name, path, directory, reason);
}

}  // namespace

TEST_CASE("find_program takes the first runnable file along PATH") {
  const Folders folders;
  const std::string first = folders / "first", second = folders / "second";
  std::string reason;
  CHECK(find("tool", first + ":" + second, "/", &reason) == first + "/tool");
  CHECK(find("tool", second + ":" + first, "/", &reason) == second + "/tool");
  CHECK(find("other", first + ":" + second, "/", &reason) == second + "/other");
  CHECK(find("tool", "/nowhere:" + first + "/tool:" + second, "/", &reason) == second + "/tool");
  CHECK(reason.empty());
}

TEST_CASE("find_program looks from the given directory, not from the caller's") {
  const Folders folders;
  const std::string root = folders.root;
  std::string reason;
  CHECK(find("tool", "first", root, &reason) == root + "/first/tool");
  CHECK(find("tool", "", root + "/first", &reason) == root + "/first/./tool");
  CHECK(find("tool", "/nowhere:", root + "/first", &reason) == root + "/first/./tool");
  CHECK(find("./first/tool", "/usr/bin", root, &reason) == root + "/./first/tool");
  CHECK(find(folders / "first/tool", "", "/nowhere", &reason) == root + "/first/tool");
  CHECK(find("/bin/sh", "", "", &reason) == "/bin/sh");
}

TEST_CASE("a name with a slash is not searched along PATH") {
  const Folders folders;
  std::string reason;
  CHECK(find("./tool", folders / "first", folders / "second/..", &reason).empty());
  CHECK(reason == "No such file or directory");
}

TEST_CASE("find_program says in the system's words why there is nothing to run") {
  const Folders folders;
  const std::string first = folders / "first";
  std::filesystem::create_symlink("loop", folders.root / "loop");
  std::filesystem::create_symlink("gone", folders.root / "dangling");
  const struct {
    std::string name, path, reason;
  } cases[] = {
      {first + "/plain", "", "Permission denied"},
      {first + "/missing", "", "No such file or directory"},
      {first + "/other", "", "Is a directory"},
      {first + "/tool/below", "", "Not a directory"},
      {folders / "loop", "", "Too many levels of symbolic links"},
      {folders / "dangling", "", "No such file or directory"},
      {"plain", first, "Permission denied"},
      {"plain", first + ":/nowhere", "Permission denied"},
      {"missing", "/nowhere:/usr/bin", "not found in PATH (/nowhere:/usr/bin)"},
      {"missing", first + "/tool", "not found in PATH (" + first + "/tool)"},
      {"other", first, "not found in PATH (" + first + ")"},
      {"", "/usr/bin", "not found in PATH (/usr/bin)"},
  };
  for (const auto& [name, path, expected] : cases) {
    CAPTURE(name);
    CAPTURE(path);
    std::string reason;
    CHECK(find(name, path, "/", &reason).empty());
    CHECK(reason == expected);
  }
}

TEST_CASE("a file that cannot be run does not hide one that can, further along PATH") {
  const Folders folders;
  std::ofstream(folders.root / "second" / "plain") << "";
  std::filesystem::permissions(folders.root / "second" / "plain", std::filesystem::perms(0755));
  std::string reason;
  CHECK(find("plain", (folders / "first") + ":" + (folders / "second"), "/", &reason) ==
        (folders / "second/plain"));
}

TEST_CASE("the reason shows a PATH with control bytes as text, and not without end") {
  std::string reason;
  CHECK(find("no-such-program", "/a\x1b[2J", "/", &reason).empty());
  CHECK(reason == "not found in PATH (/a\\x1b[2J)");
  std::string path;
  for (int i = 0; i < 200; ++i) path += "/p:";
  CHECK(find("no-such-program", path, "/", &reason).empty());
  CHECK(reason == "not found in PATH (" + path.substr(0, 300) + "...)");
}
