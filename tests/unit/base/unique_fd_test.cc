// Tests of src/base/unique_fd.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/unique_fd.h"

#include <doctest/doctest.h>
#include <fcntl.h>

#include <type_traits>
#include <vector>

static_assert(!std::is_copy_constructible_v<hv::UniqueFd>);
static_assert(!std::is_copy_assignable_v<hv::UniqueFd>);
static_assert(std::is_nothrow_move_constructible_v<hv::UniqueFd>, "or a vector would copy it");

namespace {

int open_null_unique() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool is_open_unique(int fd) { return ::fcntl(fd, F_GETFD) >= 0; }

}  // namespace

TEST_CASE("a descriptor is closed when its owner ends") {
  const int fd = open_null_unique();
  {
    const hv::UniqueFd owner(fd);
    CHECK(owner.get() == fd);
    CHECK(is_open_unique(fd));
  }
  CHECK_FALSE(is_open_unique(fd));
}

TEST_CASE("an owner of nothing is false, and descriptor 0 is something") {
  CHECK_FALSE(hv::UniqueFd());
  CHECK_FALSE(hv::UniqueFd(-1));
  hv::UniqueFd zero(0);
  CHECK(zero);
  CHECK(zero.release() == 0);
}

TEST_CASE("a released descriptor stays open and has no owner") {
  const int fd = open_null_unique();
  {
    hv::UniqueFd owner(fd);
    CHECK(owner.release() == fd);
    CHECK_FALSE(owner);
    CHECK(owner.release() == -1);
  }
  CHECK(is_open_unique(fd));
  ::close(fd);
}

TEST_CASE("a moved descriptor has the new owner only") {
  const int fd = open_null_unique();
  hv::UniqueFd first(fd);
  {
    const hv::UniqueFd second(std::move(first));
    CHECK(second.get() == fd);
    CHECK(first.get() == -1);  // a moved-from owner is empty by contract
  }
  CHECK_FALSE(is_open_unique(fd));
}

TEST_CASE("assignment closes what was owned before and takes the other's") {
  const int old_fd = open_null_unique(), new_fd = open_null_unique();
  hv::UniqueFd owner(old_fd), other(new_fd);
  owner = std::move(other);
  CHECK_FALSE(is_open_unique(old_fd));
  CHECK(is_open_unique(new_fd));
  CHECK(owner.get() == new_fd);
}

TEST_CASE("assignment to itself keeps the descriptor open") {
  hv::UniqueFd owner(open_null_unique());
  hv::UniqueFd& same = owner;
  owner = std::move(same);
  CHECK(is_open_unique(owner.get()));
}

TEST_CASE("reset closes, takes another, and twice is as once") {
  const int first = open_null_unique(), second = open_null_unique();
  hv::UniqueFd owner(first);
  owner.reset(second);
  CHECK_FALSE(is_open_unique(first));
  CHECK(owner.get() == second);
  owner.reset();
  owner.reset();
  CHECK_FALSE(is_open_unique(second));
  CHECK_FALSE(owner);
}

TEST_CASE("owners in a growing vector keep their descriptors open") {
  std::vector<hv::UniqueFd> owners;
  std::vector<int> fds;
  for (int i = 0; i < 20; ++i) fds.push_back(owners.emplace_back(open_null_unique()).get());
  for (const int fd : fds) CHECK(is_open_unique(fd));
  owners.clear();
  for (const int fd : fds) CHECK_FALSE(is_open_unique(fd));
}
