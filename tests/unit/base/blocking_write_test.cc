// SPDX-License-Identifier: Apache-2.0
#include "src/base/blocking_write.h"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <thread>

#include "tests/unit/pipe.h"

using namespace hv;
using hv::tests::Pipe;

TEST_CASE("many pieces are written as one text, empty ones too") {
  const Pipe pipe;
  const std::string one = "one ", two = "two", nothing;
  std::vector<iovec> pieces;
  for (const std::string* text : {&nothing, &one, &nothing, &two, &nothing}) {
    pieces.push_back({const_cast<char*>(text->data()), text->size()});
  }
  CHECK(write_all(pipe.writer.get(), pieces) == 0);
  CHECK(pipe.read(7) == "one two");
  CHECK(write_all(pipe.writer.get(), "") == 0);
}

TEST_CASE("more pieces than one call takes, and more bytes than a pipe holds, arrive in order") {
  const Pipe pipe;
  std::vector<std::string> texts;
  std::string expected;
  for (int i = 0; i < 3000; ++i) {
    texts.push_back(std::to_string(i) + std::string(static_cast<std::size_t>(i % 100), '.'));
    expected += texts.back();
  }
  std::thread writer([&] {
    std::vector<iovec> pieces;
    for (std::string& text : texts) pieces.push_back({text.data(), text.size()});
    CHECK(write_all(pipe.writer.get(), pieces) == 0);
  });
  CHECK(pipe.read(expected.size()) == expected);
  writer.join();
}

TEST_CASE("a failed write gives the system's reason") {
  CHECK(write_all(-1, "x") == EBADF);
  const UniqueFd full(::open("/dev/full", O_WRONLY | O_CLOEXEC));
  CHECK(write_all(full.get(), "x") == ENOSPC);
}

TEST_CASE("a descriptor that somebody else made non-blocking is waited for") {
  const Pipe pipe;
  REQUIRE(::fcntl(pipe.writer.get(), F_SETFL, O_NONBLOCK) == 0);
  const std::string much(1 << 20, 'x');
  std::thread writer([&] { CHECK(write_all(pipe.writer.get(), much) == 0); });
  CHECK(pipe.read(much.size()) == much);
  writer.join();
}
