// Sealed records as they come: the first byte says how the stream is cut, what follows is it.
// SPDX-License-Identifier: Apache-2.0
#include "src/wire/sealed_stream.h"

#include <algorithm>

#include "tests/fuzz/fuzz.h"

using namespace hv;

namespace {

const JobKey& key() {
  static const JobKey fixed;  // all zero
  return fixed;
}

struct Opened {
  std::string bytes;
  bool is_whole = true;
  bool operator==(const Opened&) const = default;
};

Opened open(std::string_view stream, std::size_t step) {
  Opened opened;
  Opener opener(key());
  for (std::size_t at = 0; at < stream.size() && opened.is_whole; at += step)
    opened.is_whole = opener.open(stream.substr(at, step), &opened.bytes);
  return opened;
}

}  // namespace

namespace hv::fuzz {

std::vector<std::string> seeds() {
  Sealer sealer(key());
  std::string stream;
  sealer.seal("a record", &stream);
  sealer.seal(std::string(300, 'x'), &stream);
  return {"\x01" + stream, "\x20" + stream, "\x05" + stream.substr(0, 30)};
}

}  // namespace hv::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::Input input(fuzz::view(data, size));
  const std::size_t step = 1 + input.byte();
  const std::string_view stream = input.rest();
  const Opened whole = open(stream, std::max<std::size_t>(1, stream.size()));
  HV_CHECK(open(stream, step) == whole, "the pieces make no difference");
  HV_CHECK(whole.bytes.size() <= stream.size(), "no more comes out than went in");
  return 0;
}
