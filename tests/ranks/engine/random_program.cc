// SPDX-License-Identifier: Apache-2.0
#include "tests/ranks/engine/random_program.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>

namespace hv::runtime {
namespace {

using Random = std::mt19937_64;

// As tests/ranks/adasum_test.cc has them.
const std::map<ElementType, double> kProgramTolerances = {
    {ElementType::kFloat16, 2e-3},    {ElementType::kBfloat16, 2e-2},
    {ElementType::kFloat32, 1e-6},    {ElementType::kFloat64, 1e-14},
    {ElementType::kFloat8E4M3, 0.15}, {ElementType::kFloat8E5M2, 0.3}};

std::uint64_t below(Random& random, std::size_t limit) { return random() % limit; }

constexpr CollectiveKind kOperationKinds[] = {
    CollectiveKind::kAllreduce,       CollectiveKind::kAllgather, CollectiveKind::kBroadcast,
    CollectiveKind::kReducescatter,   CollectiveKind::kAlltoall,  CollectiveKind::kSend,
    CollectiveKind::kSparseAllreduce, CollectiveKind::kBarrier};  // the last has no name

// Of the operations of a group; one group may have all of them.
constexpr CollectiveKind kGroupKinds[] = {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                                          CollectiveKind::kReducescatter};

void choose_reduction(Random& random, Planned* next) {
  if (!reduces(next->kind)) return;
  std::vector<Reduction> all = all_reductions();
  if (next->type != ElementType::kBool) all.push_back(Reduction::kAverage);
  if (next->kind == CollectiveKind::kAllreduce && is_floating(next->type))
    all.push_back(Reduction::kAdasum);
  next->reduction = all[below(random, all.size())];
  const bool may_compress =
      next->kind == CollectiveKind::kAllreduce &&
      (next->type == ElementType::kFloat32 || next->type == ElementType::kFloat64) &&
      (next->reduction == Reduction::kSum || next->reduction == Reduction::kMax);
  if (may_compress && random() % 2 == 0)
    next->compression = static_cast<Compression>(1 + random() % 2);
  if (next->type == ElementType::kBool || random() % 4 != 0) return;
  next->prescale = random() % 2 == 0 ? 0.5 : 2;
  next->postscale = random() % 2 == 0 ? 0.5 : 2;
}

// Together, by all members: more than a slot of shared memory holds, and a lane between hosts.
constexpr std::uint64_t kLargeElements = 1'400'000;

// Few are so large: each rank computes the results of all members.
void choose_extents(Random& random, Planned* next) {
  const bool varies = has_own_extents(next->kind), is_large = random() % 1024 == 0;
  std::uint64_t limit = varies ? 400 : random() % 16 == 0 ? 12000 : 200;
  if (is_large) limit = kLargeElements / static_cast<std::uint64_t>(next->members.size());
  const std::uint64_t least = is_large ? limit / 2 : 0;
  auto elements = static_cast<std::int64_t>(least + random() % (limit - least));
  const bool has_rows = varies || next->kind == CollectiveKind::kReducescatter;
  next->is_scalar = !has_rows && !is_large && random() % 16 == 0;
  if (next->is_scalar) elements = 1;
  for (int rank = 0; rank < next->members.size(); ++rank)
    next->extents.push_back(varies ? static_cast<std::int64_t>(random() % limit) : elements);
}

// A group that the next operations of a window belong to.
struct MemberGroup {
  std::uint64_t number = 0;
  std::uint32_t size = 0, left = 0;
  Members members{};
};

Bytes joined(const Planned& planned) {
  Bytes all;
  for (int member = 0; member < planned.members.size(); ++member) {
    const Bytes input = input_of(planned, member);
    all.insert(all.end(), input.begin(), input.end());
  }
  return all;
}

Bytes part(const Planned& planned, const Bytes& whole, std::int64_t begin, std::int64_t count) {
  const auto element = static_cast<std::ptrdiff_t>(element_size(planned.type));
  return {whole.begin() + begin * element, whole.begin() + (begin + count) * element};
}

Bytes expected_alltoall(const Planned& planned, int place) {
  Bytes all;
  for (int from = 0; from < planned.members.size(); ++from) {
    const std::vector<std::int64_t> splits = splits_of(planned, from);
    const std::int64_t begin =
        std::accumulate(splits.begin(), splits.begin() + place, std::int64_t{0});
    const Bytes mine =
        part(planned, input_of(planned, from), begin, splits[static_cast<std::size_t>(place)]);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

Bytes reduced(const Planned& planned) {
  std::vector<Bytes> inputs;
  for (int member = 0; member < planned.members.size(); ++member)
    inputs.push_back(input_of(planned, member));
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllreduce;
  request.type = planned.type;
  request.reduction = planned.reduction;
  request.prescale = planned.prescale;
  request.postscale = planned.postscale;
  if (planned.reduction == Reduction::kAdasum) return reference_adasum(request, inputs);
  if (planned.reduction == Reduction::kAverage) {
    request.reduction = Reduction::kSum;
    request.divisor = planned.members.size();
  }
  return reference_allreduce(request, inputs);
}

// NCCL multiplies the addends of an average, each of which is rounded then: what cancels leaves
// that.
bool goes_by_nccl() {
  const char* const way = std::getenv("HVRUN_TEST_MEMORY");
  return way != nullptr && std::string(way) != "staged";
}

double largest_addend(const Planned& planned) {
  double largest = 0;
  for (int member = 0; member < planned.members.size(); ++member)
    for (const double one : numbers_of(planned.type, input_of(planned, member)))
      largest = std::max(largest, std::abs(one));
  return largest;
}

}  // namespace

int Members::place_of(int rank) const {
  const auto found = std::find(ranks.begin(), ranks.end(), rank);
  return found == ranks.end() ? -1 : static_cast<int>(found - ranks.begin());
}

bool Planned::takes_part(int place) const {
  return place >= 0 && (kind != CollectiveKind::kSend || place == root || place == receiver);
}

std::vector<Planned> plan_window(Random& random, const std::vector<Members>& sets, int window) {
  std::vector<Planned> plan;
  const std::size_t count = 1 + below(random, 14);
  MemberGroup group;
  for (std::size_t i = 0; i < count; ++i) {
    const bool repeats = random() % 4 != 0;
    Planned next;
    next.members = sets[random() % 2 == 0 ? 0 : below(random, sets.size())];
    next.kind = repeats ? kOperationKinds[i % 7]
                        : kOperationKinds[below(random, std::size(kOperationKinds))];
    next.name = "t" + std::to_string(i);
    if (group.left == 0 && random() % 5 == 0 && count - i >= 2) {
      group.size =
          static_cast<std::uint32_t>(2 + below(random, std::min<std::size_t>(3, count - i - 1)));
      group = {i + 1, group.size, group.size, next.members};
    }
    if (group.left > 0) {
      --group.left;
      next.members = group.members;
      next.kind = kGroupKinds[repeats ? i % 3 : below(random, std::size(kGroupKinds))];
      next.group = group.number;
      next.group_size = group.size;
      next.name = "g" + std::to_string(i);
    }
    if (!repeats) next.name += "." + std::to_string(window);
    const auto size = static_cast<std::size_t>(next.members.size());
    if (next.kind == CollectiveKind::kSend && size < 2) next.kind = CollectiveKind::kBroadcast;
    next.type = all_types()[repeats ? i % all_types().size() : below(random, all_types().size())];
    if (next.is_sparse()) next.type = i % 2 == 0 ? ElementType::kFloat32 : ElementType::kFloat64;
    choose_reduction(random, &next);
    next.root = static_cast<int>(below(random, size));
    if (next.kind == CollectiveKind::kSend)
      next.receiver = static_cast<int>(
          (static_cast<std::size_t>(next.root) + 1 + below(random, size - 1)) % size);
    next.has_long_indices = repeats ? i % 4 < 2 : random() % 2 == 0;
    choose_extents(random, &next);
    next.seed = random();
    next.stays_on_host = (next.group == 0 ? next.seed : next.group + next.members.set) % 4 == 0;
    plan.push_back(std::move(next));
  }
  return plan;
}

Bytes input_of(const Planned& planned, int place) {
  const std::int64_t extent = planned.extents[static_cast<std::size_t>(place)];
  return random_elements(
      planned.type, static_cast<std::size_t>(extent * (planned.is_sparse() ? kSparseColumns : 1)),
      planned.seed + static_cast<std::uint64_t>(place));
}

std::vector<std::int64_t> indices_of(const Planned& planned, int place) {
  Random random(planned.seed - static_cast<std::uint64_t>(place));
  std::vector<std::int64_t> indices;
  for (std::int64_t row = 0; row < planned.extents[static_cast<std::size_t>(place)]; ++row)
    indices.push_back(static_cast<std::int64_t>(random() % 1000));
  return indices;
}

std::vector<std::int64_t> expected_indices(const Planned& planned) {
  std::vector<std::int64_t> all;
  for (int member = 0; member < planned.members.size(); ++member) {
    const std::vector<std::int64_t> mine = indices_of(planned, member);
    all.insert(all.end(), mine.begin(), mine.end());
  }
  return all;
}

std::vector<std::int64_t> splits_of(const Planned& planned, int place) {
  Random random(planned.seed + static_cast<std::uint64_t>(place));
  std::vector<std::int64_t> splits;
  std::int64_t left = planned.extents[static_cast<std::size_t>(place)];
  for (int to = 0; to + 1 < planned.members.size(); ++to) {
    splits.push_back(static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(left + 1)));
    left -= splits.back();
  }
  splits.push_back(left);
  return splits;
}

std::size_t result_bytes(const Planned& planned, int place) {
  std::int64_t elements = planned.extents[static_cast<std::size_t>(place)];
  if (planned.kind == CollectiveKind::kReducescatter)
    elements = rows_of(elements, planned.members.size(), place).count;
  if (planned.kind == CollectiveKind::kAlltoall) {
    elements = 0;
    for (int from = 0; from < planned.members.size(); ++from)
      elements += splits_of(planned, from)[static_cast<std::size_t>(place)];
  }
  return static_cast<std::size_t>(elements) * element_size(planned.type);
}

Bytes expected_of(const Planned& planned, int place) {
  switch (planned.kind) {
    case CollectiveKind::kBarrier:
      return {};
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kSend:
      return input_of(planned, planned.root);
    case CollectiveKind::kAlltoall:
      return expected_alltoall(planned, place);
    case CollectiveKind::kAllgather:
    case CollectiveKind::kSparseAllreduce:
      return joined(planned);
    case CollectiveKind::kReducescatter: {
      const RowRange rows = rows_of(planned.extents[0], planned.members.size(), place);
      return part(planned, reduced(planned), rows.begin, rows.count);
    }
    default:
      return reduced(planned);
  }
}

std::string first_mistake(const Planned& planned, int place, const Bytes& actual) {
  const Bytes expected = expected_of(planned, place);
  if (planned.reduction == Reduction::kAdasum)
    return first_distance(planned.type, expected, actual, kProgramTolerances.at(planned.type));
  if (planned.reduction == Reduction::kAverage && is_floating(planned.type) && goes_by_nccl())
    return first_distance(planned.type, expected, actual, kProgramTolerances.at(planned.type),
                          largest_addend(planned));
  const bool may_round =
      planned.reduction == Reduction::kProduct || planned.reduction == Reduction::kAverage;
  return first_difference(planned.type, expected, actual, may_round ? 4 : 0);
}

}  // namespace hv::runtime
