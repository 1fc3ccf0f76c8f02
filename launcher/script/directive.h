// What may stand in a scheduler's directive, a comment line of the script that it reads itself.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace hv::launcher {

constexpr std::size_t kMostDirectiveBytes = 1024;

// One word without blanks, quotes, backslashes, '$' or '#': schedulers differ in how they read
// those.
bool is_directive_word(std::string_view text);
// What is written as it is: "--mem=100G", "-l place=excl"; a line that begins with '-'.
bool is_directive_line(std::string_view text);
// No control bytes; for what is quoted for the shell, and for comments.
bool is_one_line(std::string_view text);

constexpr const char* kDirectiveWordForm = "a word without blanks, quotes, '\\', '$' and '#'";
constexpr const char* kDirectiveLineForm = "one line that begins with '-', such as --mem=100G";

}  // namespace hv::launcher
