// SPDX-License-Identifier: Apache-2.0
#include "runtime/collective/cross/cross_stage.h"

#include <algorithm>

#include "runtime/collective/lanes.h"

namespace hv::runtime {

Folder::Folder(const CrossTerms& terms, std::vector<Channel*> channel_of_host, int me)
    : terms_(terms), channels_(std::move(channel_of_host)), me_(me), sources_(channels_.size()) {}

bool Folder::step(std::byte* mine, std::size_t bytes, std::size_t* position) {
  std::size_t part = padded(bytes) - *position;
  for (std::size_t host = 0; host < channels_.size(); ++host) {
    if (channels_[host] == nullptr) continue;
    const auto arrived = channels_[host]->readable();
    sources_[host] = arrived.data();
    part = std::min(part, arrived.size() / kWordBytes * kWordBytes);
  }
  if (part == 0) return false;
  sources_[static_cast<std::size_t>(me_)] = mine + *position;
  const std::size_t real = std::min(part, bytes - *position);
  terms_.reduce(mine + *position, sources_.data(), static_cast<int>(sources_.size()),
                real / element_size(terms_.type), terms_.finish);
  for (Channel* channel : channels_)
    if (channel != nullptr) channel->consume(part);
  *position += part;
  return true;
}

}  // namespace hv::runtime
