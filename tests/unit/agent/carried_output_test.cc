// SPDX-License-Identifier: Apache-2.0
#include "launcher/agent/carried_output.h"

#include <doctest/doctest.h>

#include "src/base/text.h"

namespace hv::launcher {
namespace {

TEST_CASE("carried_output comes back as it was, byte for byte") {
  std::string bytes;
  for (int i = 0; i < 256 * 20; ++i) bytes += static_cast<char>(i % 256);
  std::string text, back;
  encode_carried(bytes, &text);
  CarriedDecoder decoder;
  for (const char c : text) decoder.decode({&c, 1}, &back);
  CHECK(back == bytes);
}

TEST_CASE("carried_output has long lines only, and no opening bracket in them") {
  std::string text;
  encode_carried(std::string(9000, '\n') + "[[", &text);
  CHECK(text.find('[') == std::string::npos);
  const auto lines = split(text, '\n');
  CHECK(lines.size() == 20);  // the last one is what stands behind the last newline
  for (const std::string& line : lines) CHECK(line.size() <= 1001);
}

TEST_CASE("carried_output of nothing is nothing") {
  std::string text;
  encode_carried("", &text);
  CHECK(text.empty());
}

}  // namespace
}  // namespace hv::launcher
