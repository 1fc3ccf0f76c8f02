// The words of an Error(kUsage), for tests of what is refused.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>

#include "src/base/error.h"

namespace hv::tests {

template <class Act>
std::string message_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::kUsage);
    CHECK_FALSE(error.hint().empty());
    return error.what();
  }
  return "no error";
}

template <class Act>
std::string hint_of(const Act& act) {
  try {
    act();
  } catch (const Error& error) {
    return error.hint();
  }
  return "no error";
}

}  // namespace hv::tests
