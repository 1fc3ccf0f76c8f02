// Errors of preparing a job: bad input, an unreachable host. Thrown, caught once in main.
// SPDX-License-Identifier: Apache-2.0
//
// Things that happen to running ranks and peers are values instead (Status, RankEvent).
#pragma once

#include <stdexcept>
#include <string>

namespace hv {

// The value is hvrun's exit code for it.
enum class ErrorKind { kUsage = 2, kStart = 3, kTimeout = 4, kHostLost = 5 };

class Error : public std::runtime_error {
 public:
  // what: what was being done, where, and the system's reason. hint: what to try; may be empty.
  Error(ErrorKind kind, const std::string& what, std::string hint = {})
      : std::runtime_error(what), kind_(kind), hint_(std::move(hint)) {}
  ErrorKind kind() const { return kind_; }
  const std::string& hint() const { return hint_; }

 private:
  ErrorKind kind_;
  std::string hint_;
};

}  // namespace hv
