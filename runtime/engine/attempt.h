// On the way out of an engine that has failed: what cannot be done is left undone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <new>

#include "src/base/status.h"

namespace hv::runtime {

// Where memory is short, even words may throw, and nobody is left to be told of that as well.
template <class Action>
void attempt(Action action) {
  try {
    action();
  } catch (const std::exception&) {
  }
}

// The code alone where there is no memory for make()'s words.
template <class Make>
Status in_words_if_possible(StatusCode code, Make make) {
  try {
    return make();
  } catch (const std::bad_alloc&) {
    return {code, {}};
  }
}

}  // namespace hv::runtime
