// What is told about a host whose agent does not start, by whoever knows how it is reached.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

namespace hv::launcher {

// What whoever carried the stream said at its end.
struct JudgedWords {
  std::string reason;  // those of them that say why
  std::string advice;  // empty: they are not known
};

struct HostAdvice {
  std::string host;
  std::string if_it_ends;   // what to try where its stream ends, and nothing of its words is known
  std::string if_it_waits;  // and where it says nothing
  std::function<JudgedWords(const std::string& words)> judge;
};

}  // namespace hv::launcher
