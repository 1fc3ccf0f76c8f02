// ArrivalWindow: which bytes of a lane have arrived, when several streams bring them. A value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace hv::runtime {

// Positions count a lane's bytes from its beginning. Bytes behind a gap are marked one by one, in a
// ring of bits that is there once something has come early: kSpan / 8 bytes at most, however small
// the pieces that a peer sends.
class ArrivalWindow {
 public:
  // How far from ready() a byte may lie; the caller sees to it.
  static constexpr std::size_t kSpan = 1 << 20;

  // Everything before it has arrived.
  std::uint64_t ready() const { return ready_; }
  // Nothing has arrived from it on.
  std::uint64_t end() const { return std::max(ready_, early_end_); }
  // Nothing has arrived behind a gap.
  bool is_whole() const { return early_end_ <= ready_; }

  // Bytes [begin, end) have arrived; some of them may have before. end <= ready() + kSpan.
  void add(std::uint64_t begin, std::uint64_t end) {
    if (begin >= end) return;
    if (begin > ready_) {
      mark(begin, end);
    } else if (end > ready_) {
      pass(end);
    }
  }
  // Gives the marks' memory back, when there are none.
  void shrink() {
    if (is_whole()) early_.reset();
  }

 private:
  using Word = std::uint64_t;
  static constexpr std::uint64_t kBits = 64;
  static constexpr std::size_t kWords = kSpan / kBits;

  // The word in which a position's mark lies, and its place there.
  static std::size_t word_of(std::uint64_t position) { return position / kBits % kWords; }
  static unsigned bit_of(std::uint64_t position) { return position % kBits; }

  // Calls act(word, mask) for each word that has a part of [begin, end).
  template <typename Act>
  void for_words(std::uint64_t begin, std::uint64_t end, Act act) {
    while (begin < end) {
      const std::uint64_t part = std::min(end - begin, kBits - bit_of(begin));
      const Word ones = part == kBits ? ~Word{0} : (Word{1} << part) - 1;
      act(early_[word_of(begin)], ones << bit_of(begin));
      begin += part;
    }
  }

  void mark(std::uint64_t begin, std::uint64_t end) {
    if (!early_) early_ = std::make_unique<Word[]>(kWords);
    for_words(begin, end, [](Word& word, Word mask) { word |= mask; });
    early_end_ = std::max(early_end_, end);
  }

  // ready() comes to end, and over what lies marked there. What it passes loses its marks.
  void pass(std::uint64_t end) {
    const std::uint64_t from = ready_;
    ready_ = end;
    if (early_end_ <= from) return;
    while (ready_ < early_end_) {
      const Word word = early_[word_of(ready_)] >> bit_of(ready_);
      const auto run = static_cast<std::uint64_t>(std::countr_one(word));
      ready_ += run;
      if (bit_of(ready_) != 0 || run == 0) break;
    }
    for_words(from, std::min(ready_, early_end_), [](Word& word, Word mask) { word &= ~mask; });
  }

  std::uint64_t ready_ = 0;
  std::uint64_t early_end_ = 0;    // behind the last mark
  std::unique_ptr<Word[]> early_;  // a bit for each byte that has arrived behind a gap
};

}  // namespace hv::runtime
