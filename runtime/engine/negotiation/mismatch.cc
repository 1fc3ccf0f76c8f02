// The words of a mismatch.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/negotiation/mismatch.h"

#include <algorithm>
#include <sstream>

#include "src/base/text.h"

namespace hv::runtime {
namespace {

// More variants than this are told as a number: every rank gets these words.
constexpr std::size_t kMostVariantsTold = 8;

// A list of ranks that is longer is told by its beginning.
constexpr std::size_t kMostRanksBytes = 400;
constexpr std::ptrdiff_t kFirstRanksTold = 32;

struct Aspects {
  bool operation = false;
  bool reduction = false;
  bool root = false;
  bool scale = false;
  bool group = false;
  bool compression = false;
  bool index_type = false;
  bool memory = false;
  bool window = false;
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
    aspects.compression |= other.compression != first.compression;
    aspects.memory |= other.memory != first.memory;
    aspects.window |= other.window != first.window || other.window_offset != first.window_offset;
    aspects.index_type |= other.index_type != first.index_type;
    aspects.group |= other.group != first.group || other.group_size != first.group_size;
  }
  return aspects;
}

std::string words_for(const TensorDescription& description, const Aspects& aspects) {
  std::ostringstream words;
  if (is_set_change(description.kind)) {
    words << collective_name(description.kind);
    if (description.kind == CollectiveKind::kAddSet)
      words << " of " << ranges_of("rank", {description.ranks.begin(), description.ranks.end()});
    if (description.kind == CollectiveKind::kRemoveSet) words << " " << description.root;
    return words.str();
  }
  if (aspects.operation) words << collective_name(description.kind) << " of ";
  words << element_type_name(description.type) << " " << shape_text(description.shape);
  if (aspects.reduction && has_reduction(description.kind)) {
    words << " with reduction " << reduction_name(description.reduction);
  }
  if (aspects.root && description.kind == CollectiveKind::kBroadcast)
    words << " from root " << description.root;
  if (aspects.scale)
    words << " scaled by " << description.prescale << " and " << description.postscale;
  if (aspects.compression && description.compression == Compression::kNone)
    words << " uncompressed";
  if (aspects.compression && description.compression != Compression::kNone)
    words << " compressed to "
          << element_type_name(wire_type(description.type, description.compression));
  if (aspects.memory)
    words << (description.memory == MemoryKind::kHost ? " in the host's memory" : " on a GPU");
  if (aspects.window && description.window == 0) words << " in no memory from HVRUN_ALLOCATE";
  if (aspects.window && description.window != 0)
    words << " at byte " << description.window_offset << " of allocation " << description.window;
  if (aspects.index_type && description.kind == CollectiveKind::kSparseAllreduce)
    words << " with " << element_type_name(description.index_type) << " indices";
  if (aspects.group && description.group == 0) words << " in no group";
  if (aspects.group && description.group != 0)
    words << " in group " << description.group << " of " << description.group_size;
  return words.str();
}

}  // namespace

int job_rank(const std::vector<int>& members, int place) {
  return members.empty() ? place : members.at(static_cast<std::size_t>(place));
}

std::string ranks_text(const std::vector<std::uint32_t>& places, const std::vector<int>& members) {
  std::vector<int> sorted;
  for (const std::uint32_t place : places)
    sorted.push_back(job_rank(members, static_cast<int>(place)));
  std::sort(sorted.begin(), sorted.end());
  if (format_ranges(sorted).size() <= kMostRanksBytes) return ranges_of("rank", sorted);
  std::vector<int> first(sorted.begin(), sorted.begin() + kFirstRanksTold);
  return "ranks " + format_ranges(first) + " and " +
         std::to_string(sorted.size() - kFirstRanksTold) + " more";
}

Status judge(const std::string& name, std::vector<Variant> variants,
             const std::vector<int>& members) {
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
    pieces.push_back(ranks_text(variant.ranks, members) +
                     word_for(variant.ranks.size(), " has ", " have ") +
                     words_for(variant.description, aspects));
  }
  const bool changes_sets = is_set_change(variants.front().description.kind);
  return {StatusCode::kMismatch,
          tensor_words(name) + ": " + join(pieces, ", ") +
              (changes_sets
                   ? "; every rank must call hvrun_process_set_add with the same ranks, and "
                     "hvrun_process_set_remove with the same set, in the same order, whether it is "
                     "a member or not"
                   : "; every rank must give one name the same operation, type and shape")};
}

Status judge_absence(const CompleteTensor& tensor, const JoinedRanks& joined,
                     const std::vector<int>& members, int size) {
  if (tensor.number != 0) return Status::success();  // all ranks have it
  const Variant& variant = tensor.variants.front();
  if (variant.ranks.size() == static_cast<std::size_t>(size) ||
      allows_absence(variant.description.kind))
    return Status::success();
  std::vector<std::uint32_t> absent;
  for (std::uint32_t place = 0; place < static_cast<std::uint32_t>(size); ++place) {
    const bool is_there =
        std::find(variant.ranks.begin(), variant.ranks.end(), place) != variant.ranks.end();
    if (!is_there && joined.has(place)) absent.push_back(place);
  }
  return {StatusCode::kUnsupported,
          tensor_words(tensor.name) + ": " + ranks_text(absent, members) +
              word_for(absent.size(), " has", " have") + " joined (hvrun_join), and " +
              collective_name(variant.description.kind) +
              " needs every rank: only allreduces, sparse ones too, go on without"};
}

}  // namespace hv::runtime
