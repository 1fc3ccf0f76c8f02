// Tests of where the hosts come from.
// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/allocate.h"

#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "src/base/error.h"
#include "tests/unit/temporary_folder.h"

using namespace hv::launcher;

namespace {

// A folder of its own as working directory, gone at the end.
class InNewFolder {
 public:
  InNewFolder() {
    REQUIRE(::getcwd(before_, sizeof before_));
    REQUIRE(::chdir(folder_.path().c_str()) == 0);
  }
  ~InNewFolder() { (void)!::chdir(before_); }

 private:
  hv::tests::TemporaryFolder folder_;
  char before_[4096];
};

}  // namespace

TEST_CASE("nobody named means this machine") { CHECK(allocate("", "").this_machine); }

TEST_CASE("-H with a word that is a readable file reads it, a name stays a name") {
  const InNewFolder folder;
  std::ofstream("hosts") << "x slots=3\n";
  CHECK(allocate("hosts", "").entries[0].name == "x");
  CHECK(allocate("other", "").entries[0].name == "other");
  CHECK(allocate("hosts:2", "").entries[0].name == "hosts");  // a colon: no file is meant
}

TEST_CASE("a hostfile that cannot be read is an error naming it and the reason") {
  const InNewFolder folder;
  try {
    allocate("", "missing");
    FAIL("no error");
  } catch (const hv::Error& error) {
    CHECK(std::string(error.what()) == "read hostfile missing: No such file or directory");
  }
  CHECK_THROWS_AS(allocate("", "."), hv::Error);
}

TEST_CASE("-H and --hostfile together are refused") {
  CHECK_THROWS_AS(allocate("a", "b"), hv::Error);
}
