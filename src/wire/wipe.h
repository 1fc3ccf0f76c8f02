// Overwrites bytes that may hold the job's key, in a way that no compiler leaves out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

namespace hv {

inline void wipe(std::string* text) {
  ::explicit_bzero(text->data(), text->size());
  text->clear();
}

inline void wipe(char* bytes, std::size_t size) { ::explicit_bzero(bytes, size); }

// Appends without leaving a copy of *text in freed memory when that has to grow.
inline void append_secret(std::string* text, std::string_view more) {
  if (text->capacity() - text->size() < more.size()) {
    std::string larger;
    larger.reserve(std::max(2 * text->capacity(), text->size() + more.size()));
    larger.append(*text);
    wipe(text);
    text->swap(larger);
  }
  text->append(more);
}

}  // namespace hv
