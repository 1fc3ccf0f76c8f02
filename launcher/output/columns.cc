// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/columns.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace hv::launcher {
namespace {

constexpr unsigned char kEscape = 0x1b;

struct CodePoints {
  std::uint32_t first;
  std::uint32_t last;
};
// East Asian Width "W" and "F" (Unicode TR 11), coarsely.
constexpr std::array kWide = {CodePoints{0x1100, 0x115f},   CodePoints{0x2e80, 0xa4cf},
                              CodePoints{0xac00, 0xd7a3},   CodePoints{0xf900, 0xfaff},
                              CodePoints{0xfe30, 0xfe6f},   CodePoints{0xff00, 0xff60},
                              CodePoints{0x1f300, 0x1faff}, CodePoints{0x20000, 0x3fffd}};

struct Cell {
  std::size_t bytes;
  std::size_t columns;
};

// "ESC [ parameters final byte", or ESC and one byte.
std::size_t escape_length(std::string_view text) {
  if (text.size() < 2 || text[1] != '[') return std::min<std::size_t>(text.size(), 2);
  std::size_t length = 2;
  while (length < text.size() && (text[length] < '@' || text[length] > '~')) ++length;
  return std::min(length + 1, text.size());
}

Cell control_cell(std::string_view text) {
  if (static_cast<unsigned char>(text[0]) == kEscape) return {escape_length(text), 0};
  return {1, text[0] == '\t' ? std::size_t{8} : std::size_t{0}};
}

// A character of UTF-8; a byte that begins none is one column.
Cell character_cell(std::string_view text) {
  const auto lead = static_cast<unsigned char>(text[0]);
  const std::size_t length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  if (length == 1 || text.size() < length) return {1, 1};
  std::uint32_t code = lead & (0xffu >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    if ((byte & 0xc0) != 0x80) return {1, 1};
    code = code << 6 | (byte & 0x3f);
  }
  const bool is_wide = std::any_of(kWide.begin(), kWide.end(), [code](const CodePoints& range) {
    return code >= range.first && code <= range.last;
  });
  return {length, is_wide ? std::size_t{2} : std::size_t{1}};
}

Cell first_cell(std::string_view text) {
  const auto byte = static_cast<unsigned char>(text[0]);
  return byte < 0x20 || byte == 0x7f ? control_cell(text) : character_cell(text);
}

}  // namespace

std::size_t columns_of(std::string_view text) {
  std::size_t columns = 0;
  while (!text.empty()) {
    const Cell cell = first_cell(text);
    columns += cell.columns;
    text.remove_prefix(cell.bytes);
  }
  return columns;
}

std::string_view clip_to_columns(std::string_view text, std::size_t columns) {
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const Cell cell = first_cell(text.substr(bytes));
    if (cell.columns > columns) break;
    columns -= cell.columns;
    bytes += cell.bytes;
  }
  return text.substr(0, bytes);
}

}  // namespace hv::launcher
