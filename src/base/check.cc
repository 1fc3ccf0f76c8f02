// SPDX-License-Identifier: Apache-2.0
#include "src/base/check.h"

#include <cstdio>
#include <cstdlib>

namespace hv {

void check_failed(const char* file, int line, const char* condition, const std::string& context) {
  std::fprintf(stderr,
               "hvrun: internal error at %s:%d: %s does not hold (%s); please report this\n", file,
               line, condition, context.c_str());
  std::abort();
}

}  // namespace hv
