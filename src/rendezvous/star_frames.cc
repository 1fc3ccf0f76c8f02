// SPDX-License-Identifier: Apache-2.0
#include "src/rendezvous/star_frames.h"

#include <cstring>
#include <utility>

#include "src/wire/codec.h"
#include "src/wire/wipe.h"

namespace hv {
namespace {

struct Gathered {
  std::vector<std::string> all;
  void fields(auto& a) { a(all); }
};

}  // namespace

std::string frame_head(std::string_view bytes) {
  const std::uint64_t size = bytes.size();
  return {reinterpret_cast<const char*>(&size), sizeof size};
}

FrameState take_frame(std::string* come, std::uint64_t most, std::string* bytes) {
  std::uint64_t size = 0;
  if (come->size() < sizeof size) return FrameState::kPartial;
  std::memcpy(&size, come->data(), sizeof size);
  if (size > most) return FrameState::kTooLong;
  if (come->size() - sizeof size < size) return FrameState::kPartial;
  bytes->assign(*come, sizeof size, size);
  std::string rest = come->substr(sizeof size + size);
  wipe(come);
  come->swap(rest);
  return FrameState::kWhole;
}

std::string encode_gathered(std::vector<std::string> all) {
  return encode(Gathered{std::move(all)});
}

bool decode_gathered(std::string_view bytes, std::size_t ranks, std::vector<std::string>* all) {
  Gathered gathered;
  if (!decode(bytes, &gathered) || gathered.all.size() != ranks) return false;
  *all = std::move(gathered.all);
  return true;
}

}  // namespace hv
