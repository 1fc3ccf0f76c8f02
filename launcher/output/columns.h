// How many columns of a terminal a text fills. Pure; an estimate good enough to keep updates in one
// row.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

namespace hv::launcher {

// Escape sequences count nothing, East Asian characters and emoji two columns, all else one.
std::size_t columns_of(std::string_view text);
// The longest beginning that fits; never ends inside a character or an escape sequence.
std::string_view clip_to_columns(std::string_view text, std::size_t columns);

}  // namespace hv::launcher
