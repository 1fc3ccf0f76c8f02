// Pure functions on text: strict numbers, splitting, quoting, the nearest name.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hv {

// "".split is one empty piece; separators are kept out.
std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);
std::string lower(std::string_view text);
std::string join(const std::vector<std::string>& pieces, std::string_view separator);
// "a, b and 3 more": eight of them at most, for messages.
std::string join_some(const std::vector<std::string>& pieces);

// The whole text must be the number; no spaces, no '+', no overflow.
std::optional<std::int64_t> parse_integer(std::string_view text);
std::optional<std::int64_t> parse_bytes(
    std::string_view text);  // 65536, 64K, 64KiB, 1M, 2G (powers of 1024)
std::optional<double> parse_seconds(std::string_view text);  // 60, 0.5, 60s, 500ms, 2m, 1h
std::optional<double> parse_number(std::string_view text);   // a finite decimal

std::string errno_text(int errno_value);
// For messages: control bytes and bytes that are no UTF-8 as \xNN; at most limit bytes, then "...".
std::string printable(std::string_view text, std::size_t limit = 200);
// The same of each line, without a limit: for text of several lines, at the edge of the program.
std::string printable_lines(std::string_view text);
// One word for a POSIX shell: 'it'\''s'.
std::string shell_quote(std::string_view text);
// Splits a command as a shell does; knows quotes and backslashes, nothing else. None: a quote is
// not closed.
std::optional<std::vector<std::string>> shell_words(std::string_view text);
std::string hex(const void* bytes, std::size_t size);
std::string format_bytes(std::uint64_t bytes);
// For "did you mean": the candidate with the least edit distance (a swap of neighbours is one
// edit), if that is at most a third of the word's length. most: a lower limit.
std::optional<std::string> nearest(std::string_view word,
                                   const std::vector<std::string>& candidates,
                                   std::size_t most = SIZE_MAX);
// "0-3,7" from {0,1,2,3,7}.
std::string format_ranges(const std::vector<int>& sorted);

// singular for 1, else plural; without one, singular with an s: "rank" or "ranks", "has" or "have".
std::string word_for(std::uint64_t count, std::string_view singular, std::string_view plural = {});
// "1 rank", "3 ranks"
std::string count_of(std::uint64_t count, std::string_view singular, std::string_view plural = {});
// "rank 3", "ranks 0-3,7"
std::string ranges_of(std::string_view singular, const std::vector<int>& sorted);

}  // namespace hv
