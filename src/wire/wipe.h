// Overwrites bytes that may hold the job's key, in a way that no compiler leaves out, and what
// copying them has left on the stack below the caller, and on x86-64 in vector registers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace hv {

void wipe(std::string* text);
void wipe(char* bytes, std::size_t size);

// Appends without leaving a copy of *text in freed memory when that has to grow.
void append_secret(std::string* text, std::string_view more);

}  // namespace hv
