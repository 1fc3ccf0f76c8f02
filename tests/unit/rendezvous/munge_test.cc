// Tests of credentials, by a stand-in for libmunge that keeps its rules.
// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/munge.h"
#include "tests/unit/paths.h"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cstdlib>

using namespace hv;

namespace {

// From now on it is the libmunge.so.2 of this program, also where there is a real one.
void* const stand_in = ::dlopen(hv::tests::test_library("munge/libmunge.so.2").c_str(), RTLD_NOW);

// As whom the stand-in is called, for as long as it is there.
class Caller {
 public:
  explicit Caller(uid_t user) { ::setenv("HVRUN_TEST_MUNGE", std::to_string(user).c_str(), 1); }
  ~Caller() { ::unsetenv("HVRUN_TEST_MUNGE"); }
};

const uid_t kOther = ::geteuid() + 1;

std::unique_ptr<Munge> open_munge() {
  REQUIRE(stand_in != nullptr);
  std::unique_ptr<Munge> munge;
  REQUIRE(Munge::open(&munge).ok());
  return munge;
}

}  // namespace

TEST_CASE("munge that nobody answers is told with its own words") {
  REQUIRE(stand_in != nullptr);
  std::unique_ptr<Munge> munge;
  CHECK(Munge::open(&munge).message ==
        "make a credential by munge: Failed to access \"/run/munge/munge.socket.2\"");
}

TEST_CASE("what this user has sealed this user reads, and nobody else, root neither") {
  const Caller self(::geteuid());
  const auto munge = open_munge();
  std::string credential, bytes;
  REQUIRE(munge->seal("the key", &credential).ok());
  CHECK(munge->unseal(credential, &bytes).ok());
  CHECK(bytes == "the key");
  const Caller other(kOther);
  std::string stolen;
  CHECK(munge->unseal(credential, &stolen).message ==
        "check a credential by munge: Unauthorized credential");
  CHECK(stolen == "");
}

TEST_CASE(
    "a credential that another user has made is refused, though munge itself vouches for it") {
  const Caller self(::geteuid());
  const auto munge = open_munge();
  const std::string maker = std::to_string(kOther);
  for (const std::string& reader : {std::string("-1"), std::to_string(::geteuid())}) {
    std::string bytes = "before";
    const Status status = munge->unseal(maker + ":" + reader + ":7.9 words", &bytes);
    CHECK(status.message == "check a credential by munge: it is user " + maker + "'s");
    CHECK(bytes == "before");
  }
}
