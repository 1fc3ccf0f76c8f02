// A pipe of a test's own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <cstddef>
#include <string>

#include "src/base/unique_fd.h"

namespace hv::tests {

struct Pipe {
  Pipe() {
    int fds[2];
    REQUIRE(::pipe2(fds, O_CLOEXEC) == 0);
    reader.reset(fds[0]);
    writer.reset(fds[1]);
  }
  // So many bytes; fewer when the last writer has closed.
  std::string read(std::size_t bytes) const {
    std::string text(bytes, '\0');
    std::size_t have = 0;
    for (ssize_t got;
         have < bytes && (got = ::read(reader.get(), &text[have], bytes - have)) > 0;) {
      have += static_cast<std::size_t>(got);
    }
    text.resize(have);
    return text;
  }
  // Once nobody else writes.
  std::string read_all() {
    writer.reset();
    return read(1 << 20);
  }
  UniqueFd reader;
  UniqueFd writer;
};

}  // namespace hv::tests
