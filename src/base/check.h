// HV_CHECK: broken invariants end the process with file and line. Never for input.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hv {
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& context);
}

#define HV_CHECK(condition, context)                                                 \
  do {                                                                               \
    if (!(condition)) ::hv::check_failed(__FILE__, __LINE__, #condition, (context)); \
  } while (0)
