// The words of a mismatch.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/mismatch.h"

#include <algorithm>
#include <sstream>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

// More variants than this are told as a number: every rank gets these words.
constexpr std::size_t kMostVariantsTold = 8;

struct Aspects {
  bool operation = false;
  bool reduction = false;
  bool root = false;
  bool scale = false;
};

Aspects differing(const std::vector<Variant>& variants) {
  Aspects aspects;
  const TensorDescription& first = variants.front().description;
  for (const Variant& variant : variants) {
    const TensorDescription& other = variant.description;
    aspects.operation |= other.kind != first.kind;
    aspects.reduction |= other.reduction != first.reduction;
    aspects.root |= other.root != first.root;
    aspects.scale |= other.prescale != first.prescale || other.postscale != first.postscale;
  }
  return aspects;
}

std::string words_for(const TensorDescription& description, const Aspects& aspects) {
  std::ostringstream words;
  if (aspects.operation) words << collective_name(description.kind) << " of ";
  words << element_type_name(description.type) << " " << shape_text(description.shape);
  if (aspects.reduction && description.kind == CollectiveKind::kAllreduce) {
    words << " with reduction " << reduction_name(description.reduction);
  }
  if (aspects.root && description.kind == CollectiveKind::kBroadcast)
    words << " from root " << description.root;
  if (aspects.scale)
    words << " scaled by " << description.prescale << " and " << description.postscale;
  return words.str();
}

}  // namespace

std::string ranks_text(std::vector<std::uint32_t> ranks) {
  std::sort(ranks.begin(), ranks.end());
  const std::vector<int> sorted(ranks.begin(), ranks.end());
  return (sorted.size() == 1 ? "rank " : "ranks ") + format_ranges(sorted);
}

Status judge(const std::string& name, std::vector<Variant> variants) {
  if (variants.size() <= 1) return Status::success();
  // By lowest rank, so that the words do not depend on the order of arrival.
  for (Variant& variant : variants) std::sort(variant.ranks.begin(), variant.ranks.end());
  std::sort(variants.begin(), variants.end(),
            [](const Variant& a, const Variant& b) { return a.ranks < b.ranks; });
  const Aspects aspects = differing(variants);
  std::vector<std::string> pieces;
  for (const Variant& variant : variants) {
    if (pieces.size() == kMostVariantsTold) {
      pieces.push_back("and " + std::to_string(variants.size() - pieces.size()) + " more variants");
      break;
    }
    pieces.push_back(ranks_text(variant.ranks) + (variant.ranks.size() == 1 ? " has " : " have ") +
                     words_for(variant.description, aspects));
  }
  return {StatusCode::kMismatch,
          "tensor '" + printable(name) + "': " + join(pieces, ", ") +
              "; every rank must give one name the same operation, type and shape"};
}

}  // namespace hv::runtime
