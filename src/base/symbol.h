// Functions of a library that was opened at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dlfcn.h>

namespace hv {

// library: of dlopen(). False: it has no function of that name.
template <class Function>
bool find_function(void* library, const char* name, Function* function) {
  *function = reinterpret_cast<Function>(::dlsym(library, name));
  return *function != nullptr;
}

}  // namespace hv
