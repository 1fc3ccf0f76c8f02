// Same bits: a reduction's result depends on nothing but its inputs and the job's shape.
// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/device/float8.h"
#include "runtime/device/half.h"
#include "tests/ranks/drawn.h"
#include "tests/ranks/in_heap.h"

namespace hv::runtime {
namespace {

// An allreduce whose bits depend on what is done to an element, and in which order.
struct DelicateCase {
  ElementType type;
  Reduction reduction;  // kAverage: a sum with a divisor, as the engine asks for it
  double prescale = 1, postscale = 1;
  Compression compression = Compression::kNone;
};

std::string name_of_case(const DelicateCase& delicate) {
  return std::string(reduction_name(delicate.reduction)) + " of " +
         element_type_name(delicate.type) + " scaled by " + std::to_string(delicate.prescale) +
         " and " + std::to_string(delicate.postscale) + " as " +
         element_type_name(wire_type(delicate.type, delicate.compression));
}

std::vector<DelicateCase> delicate_cases() {
  std::vector<DelicateCase> cases;
  for (const ElementType type :
       {ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat32, ElementType::kFloat64,
        ElementType::kFloat8E4M3, ElementType::kFloat8E5M2}) {
    for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kProduct,
                                      Reduction::kMin, Reduction::kMax})
      cases.push_back({type, reduction});
    for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kMax})
      cases.push_back({type, reduction, 1.0 / 3, 0.7});
  }
  return cases;
}

std::vector<DelicateCase> compressed_cases() {
  std::vector<DelicateCase> cases;
  for (const ElementType type : {ElementType::kFloat32, ElementType::kFloat64}) {
    for (const Compression compression : {Compression::kFloat16, Compression::kBfloat16}) {
      for (const Reduction reduction : {Reduction::kSum, Reduction::kAverage, Reduction::kProduct})
        cases.push_back({type, reduction, 1, 1, compression});
      cases.push_back({type, Reduction::kSum, 1.0 / 3, 0.7, compression});
    }
  }
  return cases;
}

// The powers of two that values spread over: far for sums, while 8 factors must stay in range.
int spread_of(const DelicateCase& delicate) {
  if (delicate.reduction == Reduction::kProduct) return 2;
  const ElementType wire = wire_type(delicate.type, delicate.compression);
  if (wire == ElementType::kFloat64) return 70;
  if (is_float8(wire)) return wire == ElementType::kFloat8E4M3 ? 14 : 26;
  return wire == ElementType::kFloat16 ? 26 : 40;
}

double random_number(std::mt19937_64* random, int lowest_exponent, int exponents) {
  const double significand =
      (1 + static_cast<double>((*random)() >> 12) * 0x1p-52) * ((*random)() % 2 == 0 ? 1 : -1);
  const auto above = static_cast<int>((*random)() % static_cast<unsigned>(exponents));
  return std::ldexp(significand, lowest_exponent + above);
}

template <typename T>
void append(Bytes* bytes, T value) {
  const auto* first = reinterpret_cast<const std::byte*>(&value);
  bytes->insert(bytes->end(), first, first + sizeof value);
}

// What meets itself in other ways when the order changes: NaNs with payloads and signs, zeros and
// infinities of both signs.
double special_number(std::mt19937_64* random) {
  const std::uint64_t nan = 0x7ff8000000000000u | ((*random)() & 0x8007ffff00000000u);
  double payload;
  std::memcpy(&payload, &nan, sizeof payload);
  const double values[] = {payload, payload, 0.0, -0.0, INFINITY, -INFINITY, 1.0, -1.0};
  return values[(*random)() % std::size(values)];
}

// Finite numbers of both signs whose sums, or products, depend on the order. 16-bit and 8-bit
// floats are folded in single precision: that shows only where large numbers of two ranks cancel
// out, as they do in every other sum. Every seventh is a special one.
Bytes delicate(const DelicateCase& delicate, std::size_t count, int rank) {
  std::mt19937_64 own(static_cast<unsigned>(rank) * 7919 + 13), common(17);
  const int spread = spread_of(delicate);
  Bytes bytes;
  for (std::size_t i = 0; i < count; ++i) {
    const double large = random_number(&common, spread / 2, 1);
    double value = random_number(&own, -spread / 2, spread);
    if (i % 2 == 0 && delicate.reduction != Reduction::kProduct) {
      const int turn = static_cast<int>(i / 2 % 3);
      value = random_number(&own, -spread / 2, spread / 2);
      if (rank == turn) value = large;
      if (rank == (turn + 1) % 3) value = -large;
    }
    if (i % 7 == 6) value = special_number(&own);
    const auto single = static_cast<float>(value);
    if (delicate.type == ElementType::kFloat16) append(&bytes, half_from_float(single));
    if (delicate.type == ElementType::kBfloat16) append(&bytes, bfloat_from_float(single));
    if (delicate.type == ElementType::kFloat8E4M3) append(&bytes, e4m3_from_float(single));
    if (delicate.type == ElementType::kFloat8E5M2) append(&bytes, e5m2_from_float(single));
    if (delicate.type == ElementType::kFloat32) append(&bytes, single);
    if (delicate.type == ElementType::kFloat64) append(&bytes, value);
  }
  return bytes;
}

CollectiveRequest request_of(const DelicateCase& delicate, int size) {
  const bool averages = delicate.reduction == Reduction::kAverage;
  CollectiveRequest request =
      allreduce_of(delicate.type, averages ? Reduction::kSum : delicate.reduction);
  request.divisor = averages ? size : 1;
  request.prescale = delicate.prescale;
  request.postscale = delicate.postscale;
  request.compression = delicate.compression;
  request.deterministic = true;
  return request;
}

struct Layout {
  std::vector<std::size_t> pieces;  // elements
  bool is_fused, is_in_place;
};

enum class Memory { kPrivate, kHeap };

Status run_in(RankContext& context, CollectiveRequest request, Memory memory) {
  if (memory == Memory::kPrivate) return context.run(request);
  const InHeap moved(context, request, request.segments.size());
  const Status status = context.run(request);
  moved.bring_back();
  return status;
}

// The bytes of the result over all ranks, reduced as one request, or one for each piece.
Bytes reduce_in_layout(RankContext& context, CollectiveRequest request, Bytes input,
                       const Layout& layout, Memory memory) {
  Bytes output(input.size());
  Bytes& target = layout.is_in_place ? input : output;
  std::size_t at = 0;
  for (const std::size_t piece : layout.pieces) {
    request.segments.push_back({&input[at], &target[at], static_cast<std::int64_t>(piece)});
    at += piece * element_size(request.type);
    if (layout.is_fused) continue;
    require(run_in(context, request, memory).ok(), "allreduce");
    request.segments.clear();
  }
  if (layout.is_fused) require(run_in(context, request, memory).ok(), "fused allreduce");
  return target;
}

// Holds the first result of each case, and every later one against it.
class FirstBits {
 public:
  void check(const DelicateCase& delicate, const Bytes& result, int rank) {
    std::lock_guard lock(mutex_);
    const auto& first = results_.try_emplace(name_of_case(delicate), result).first->second;
    require(result == first,
            name_of_case(delicate) + ": the bits differ on rank " + std::to_string(rank));
  }

 private:
  std::mutex mutex_;  // guards results_
  std::map<std::string, Bytes> results_;
};

// How a job reduces: what is in small slots, in large ones, or in no slot must have the same bits.
struct Way {
  std::size_t slot_bytes;
  Memory memory;
  bool operator==(const Way&) const = default;
};

// Runs each case in several layouts, and in all ways that there are on that shape.
void check_bits(const JobShape& shape, const std::vector<DelicateCase>& cases, std::size_t count,
                const std::vector<Layout>& layouts) {
  std::vector<Way> ways = {{4096, Memory::kPrivate}, {131072, Memory::kPrivate}};
  if (shape.size() == 1) ways.push_back({131072, Memory::kHeap});
  FirstBits bits;
  const auto all = drawn_product(ways, cases, layouts);
  for (const Way& way : ways) {
    RunOptions options;
    options.config.slot_bytes = way.slot_bytes;
    if (way.memory == Memory::kHeap) {
      options.config.heap_bytes = 16 << 20;
      options.algorithms = "allreduce:inplace";
    }
    run_ranks(shape, options, [&](RankContext& context) {
      for (const auto& [of_way, each, layout] : all) {
        if (of_way != way) continue;
        context.at(name_of_case(each));
        const Bytes input = delicate(each, count, context.rank);
        bits.check(
            each,
            reduce_in_layout(context, request_of(each, context.size), input, layout, way.memory),
            context.rank);
      }
    });
  }
}

constexpr std::size_t kRow = 3;

// Reduces tables of so many rows, one after the other or as one request, and compares this rank's
// shares with the same rows of an allreduce, `all`.
void check_shares(RankContext& context, const DelicateCase& each, const Bytes& input,
                  const Bytes& all, const Layout& layout) {
  const std::size_t row_bytes = kRow * element_size(each.type);
  CollectiveRequest request = request_of(each, context.size);
  request.kind = CollectiveKind::kReducescatter;
  Bytes shares(all.size()), expected(all.size());  // each share where it lies in the whole
  std::size_t at = 0;
  for (const std::size_t rows : layout.pieces) {
    const RowRange own = rows_of(static_cast<std::int64_t>(rows), context.size, context.rank);
    const std::size_t first = at + static_cast<std::size_t>(own.begin) * row_bytes;
    std::memcpy(expected.data() + first, all.data() + first,
                static_cast<std::size_t>(own.count) * row_bytes);
    request.segments.push_back(
        {&input[at], shares.data() + first, static_cast<std::int64_t>(rows * kRow)});
    request.row_counts.push_back(kRow);
    at += rows * row_bytes;
    if (layout.is_fused) continue;
    require(context.run(request).ok(), "reducescatter");
    request.segments.clear();
    request.row_counts.clear();
  }
  if (layout.is_fused) require(context.run(request).ok(), "fused reducescatter");
  require(shares == expected,
          name_of_case(each) + ": other bits in a share of rank " + std::to_string(context.rank));
}

}  // namespace

TEST_CASE("a sum has the same bits whatever the fusion, the slots, the memory and the run") {
  std::vector<Layout> layouts;
  for (const std::vector<std::size_t>& pieces : std::vector<std::vector<std::size_t>>{
           {30000}, {1, 29999}, {10000, 10000, 10000}, {3, 5, 7, 11000, 18985}, {29000, 1000}}) {
    layouts.push_back({pieces, true, false});
    layouts.push_back({pieces, false, false});
  }
  for (const JobShape& shape : {JobShape{2}, JobShape{3}, JobShape{5}, JobShape{8}, JobShape{3, 3},
                                JobShape{2, 2, 2}, JobShape{1, 1, 1}, JobShape{1, 1, 1, 1, 1}}) {
    CAPTURE(name_of(shape));
    check_bits(shape, {{ElementType::kFloat32, Reduction::kSum}}, 30000, layouts);
  }
}

TEST_CASE("every reduction of every float has the same bits whatever the fusion and the memory") {
  const std::vector<Layout> layouts = {{{9001}, true, false},
                                       {{9001}, true, true},
                                       {{1, 4000, 5000}, true, false},
                                       {{1, 4000, 5000}, false, true},
                                       {{4097, 3, 4901}, false, false}};
  for (const JobShape& shape :
       {JobShape{3}, JobShape{5}, JobShape{3, 3}, JobShape{1, 1, 1}, JobShape{1, 1, 1, 1, 1}}) {
    CAPTURE(name_of(shape));
    check_bits(shape, delicate_cases(), 9001, layouts);
  }
}

TEST_CASE("a compressed allreduce has the same bits whatever the fusion, the slots and the run") {
  const std::vector<Layout> layouts = {
      {{9001}, true, false}, {{1, 4000, 5000}, true, true}, {{4097, 3, 4901}, false, false}};
  for (const JobShape& shape : {JobShape{2}, JobShape{3}, JobShape{3, 3}, JobShape{2, 1, 2},
                                JobShape{1, 1, 1}, JobShape{1, 1, 1, 1, 1}}) {
    CAPTURE(name_of(shape));
    check_bits(shape, compressed_cases(), 9001, layouts);
  }
}

TEST_CASE(
    "a reducescatter's share has the bits of an allreduce, whatever the fusion and the slots") {
  const std::vector<Layout> layouts = {
      {{1, 700, 800}, true, false}, {{1, 700, 800}, false, false}, {{1501}, false, false}};
  const std::vector<std::size_t> slot_sizes = {4096, 131072};
  const auto all = drawn_product(slot_sizes, delicate_cases(), layouts);
  for (const JobShape& shape : {JobShape{3}, JobShape{3, 3}, JobShape{2, 1, 2}, JobShape{1, 1, 1},
                                JobShape{1, 1, 1, 1, 1}}) {
    CAPTURE(name_of(shape));
    for (const std::size_t slot_bytes : slot_sizes) {
      RunOptions options;
      options.config.slot_bytes = slot_bytes;
      run_ranks(shape, options, [&](RankContext& context) {
        for (const auto& [in_slots, each, layout] : all) {
          if (in_slots != slot_bytes) continue;
          context.at("shares of a " + name_of_case(each));
          const Bytes input = delicate(each, 1501 * kRow, context.rank);
          const Bytes sums = reduce_in_layout(context, request_of(each, context.size), input,
                                              {{1501 * kRow}, true, false}, Memory::kPrivate);
          check_shares(context, each, input, sums, layout);
        }
      });
    }
  }
}

// Of many hosts a tree would round these at each. Single precision goes over one.
TEST_CASE("what has 16 or 8 bits is folded in the order of ranks without being asked for it, too") {
  std::atomic<bool> do_singles_differ{false};
  run_ranks({1, 1, 1, 1, 1}, {}, [&](RankContext& context) {
    for (const ElementType type :
         {ElementType::kFloat16, ElementType::kBfloat16, ElementType::kFloat8E4M3,
          ElementType::kFloat8E5M2, ElementType::kFloat32}) {
      const DelicateCase each{type, Reduction::kSum};
      context.at(name_of_case(each));
      const Layout layout{{2000}, true, false};  // the largest of these has 8 KB
      const Bytes input = delicate(each, 2000, context.rank);
      CollectiveRequest request = request_of(each, context.size);
      const Bytes asked = reduce_in_layout(context, request, input, layout, Memory::kPrivate);
      request.deterministic = false;
      const Bytes unasked = reduce_in_layout(context, request, input, layout, Memory::kPrivate);
      if (type == ElementType::kFloat32) {
        if (asked != unasked) do_singles_differ = true;
      } else {
        require(asked == unasked, name_of_case(each) + ": a tree was taken");
      }
    }
  });
  CHECK(do_singles_differ);  // or this test proves nothing
}

TEST_CASE("the delicate numbers are delicate: another order gives other bits") {
  const auto changed_by_order = [](const DelicateCase& given, auto fold) {
    std::array<std::vector<float>, 3> of_rank;
    for (int rank = 0; rank < 3; ++rank) {
      const Bytes bytes = delicate(given, 1000, rank);
      of_rank[static_cast<std::size_t>(rank)].resize(1000);
      std::memcpy(of_rank[static_cast<std::size_t>(rank)].data(), bytes.data(), bytes.size());
    }
    const auto& [a, b, c] = of_rank;
    int differences = 0;
    for (std::size_t i = 0; i < a.size(); ++i) {
      if (std::isnan(a[i]) || std::isnan(b[i]) || std::isnan(c[i])) continue;
      differences += fold(fold(a[i], b[i]), c[i]) != fold(a[i], fold(b[i], c[i]));
    }
    return differences;
  };
  CHECK(changed_by_order({ElementType::kFloat32, Reduction::kSum}, std::plus<>()) > 100);
  CHECK(changed_by_order({ElementType::kFloat32, Reduction::kProduct}, std::multiplies<>()) > 100);
}

}  // namespace hv::runtime
