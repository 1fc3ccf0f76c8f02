// SPDX-License-Identifier: Apache-2.0
#include "launcher/script/directive.h"

#include <algorithm>

namespace hv::launcher {

bool is_directive_word(std::string_view text) {
  constexpr std::string_view kRefused = "\"'`\\$#;<>";
  return !text.empty() && text.size() <= kMostDirectiveBytes && text[0] != '-' &&
         std::all_of(text.begin(), text.end(), [&](char c) {
           return c > ' ' && c < 127 && kRefused.find(c) == std::string_view::npos;
         });
}

bool is_one_line(std::string_view text) {
  return text.size() <= kMostDirectiveBytes &&
         std::none_of(text.begin(), text.end(),
                      [](unsigned char c) { return c < ' ' || c == 127; });
}

bool is_directive_line(std::string_view text) {
  return text.size() > 1 && text[0] == '-' && is_one_line(text);
}

}  // namespace hv::launcher
