// SPDX-License-Identifier: Apache-2.0
#include "launcher/allocation/text_place.h"

#include "src/base/error.h"
#include "src/base/text.h"

namespace hv::launcher {

std::string Place::origin() const { return line ? source + ":" + std::to_string(line) : source; }

void mistake(const Place& place, std::size_t column, const std::string& what,
             const std::string& expected) {
  // The caret must stand below its byte also where the line holds tabs or is cut.
  constexpr std::size_t kShown = 120;
  const std::size_t first = column > kShown / 2 ? column - kShown / 2 : 0;
  const std::string before = printable(place.text.substr(first, column - first), 10 * kShown);
  const std::string after =
      printable(place.text.substr(std::min(column, place.text.size()), kShown), 10 * kShown);
  throw Error(ErrorKind::kUsage,
              place.origin() + ":" + std::to_string(column + 1) + ": " + what + "\n  " + before +
                  after + "\n  " + std::string(before.size(), ' ') + "^",
              "expected " + expected);
}

}  // namespace hv::launcher
