// On the way out of an engine that has failed: what cannot be done is left undone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>

namespace hv::runtime {

// Where memory is short, even words may throw, and nobody is left to be told of that as well.
template <class Action>
void attempt(Action action) {
  try {
    action();
  } catch (const std::exception&) {
  }
}

}  // namespace hv::runtime
