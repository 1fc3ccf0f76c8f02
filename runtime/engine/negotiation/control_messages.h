// What ranks tell each other to agree on which tensors are ready; reports go up the tree, decisions
// down.
// SPDX-License-Identifier: Apache-2.0
//
// Both carry the job's epoch. A tensor seen before is its number in the response cache, which is
// the same on every rank because every rank applies the same decisions in the same order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/engine/negotiation/bucket_planner.h"
#include "runtime/engine/negotiation/number_bits.h"
#include "runtime/engine/tensor_description.h"
#include "src/wire/codec.h"

namespace hv::runtime {

enum class ControlType : std::uint8_t {
  kReport = 1,
  kDecision = 2,
  kFailure = 3,
  kAlive = 4,
  kStallQuestion = 16,
  kStallAnswer = 17
};

// Some ranks say the same of one tensor.
struct Variant {
  TensorDescription description;
  std::vector<std::uint32_t> ranks;  // in a report none: the sender's whole subtree, ascending
  std::vector<std::int64_t>
      first_extents;  // where they vary: those ranks' own, in their order; else empty
  void fields(auto& a) { a(description, ranks, first_extents); }
};

// Every rank of the sender's subtree has this tensor ready. More than one variant: they disagree.
struct FreshReport {
  std::string name;
  std::vector<Variant> variants;
  void fields(auto& a) { a(name, variants); }
};

// Some ranks of the sender's subtree have had this tensor ready for long, others not.
struct PartialReport {
  std::string name;
  std::uint64_t waited_ms = 0;
  std::vector<std::uint32_t> missing;
  std::vector<std::uint32_t> silent;  // see Waiting
  void fields(auto& a) { a(name, waited_ms, missing, silent); }
};

// The longest wait that a report is about (straggler.h).
struct LatestArrival {
  std::uint64_t waited_us = 0;  // since the first rank of the sender's subtree had the tensor
  std::uint32_t rank = 0;       // had it last
  void fields(auto& a) { a(waited_us, rank); }
};

struct Report {
  std::uint32_t epoch = 0;
  std::uint64_t decisions = 0;         // that the sender has applied: so far it knows the cache
  std::vector<NumberBits> numbers;     // cached tensors that are ready in the whole subtree
  std::vector<std::uint64_t> buckets;  // whose tensors are all ready in the whole subtree
  std::uint64_t deviates = 0;  // a rank of it cannot keep to this plan (prediction.h); 0: all can
  std::vector<FreshReport> fresh;
  std::vector<PartialReport> partial;
  std::vector<std::uint32_t> leaving;   // ranks that want to shut down
  std::vector<std::uint32_t> joined;    // ranks that have run out of data since the last report
  std::string ending;                   // a stall ends the job, in these words
  std::vector<std::uint32_t> launches;  // sets that ask for a turn each (launch_order.h)
  LatestArrival latest{};
  void fields(auto& a) {
    a(epoch, decisions, numbers, buckets, deviates, fresh, partial, leaving, joined, ending,
      launches, latest);
  }
  bool empty() const {
    return numbers.empty() && buckets.empty() && deviates == 0 && fresh.empty() &&
           partial.empty() && leaving.empty() && joined.empty() && ending.empty() &&
           launches.empty();
  }
};

struct FreshTensor {
  std::string name;
  std::vector<std::int64_t> first_extents;  // where they vary: by rank
  // Of how many ranks it is, when others have joined: those learn here what it is. Else 0 and none.
  std::uint32_t present = 0;
  std::vector<TensorDescription> description{};
  void fields(auto& a) { a(name, first_extents, present, description); }
};

// Tensors that travel together, in this order: the cached ones, then the fresh ones; or those of a
// bucket and nothing else.
struct Group {
  std::vector<std::uint64_t> numbers{};
  std::vector<FreshTensor> fresh{};
  std::uint64_t bucket = 0;
  void fields(auto& a) { a(bucket, numbers, fresh); }
};

// This tensor fails on every rank; the job goes on.
struct Refusal {
  std::string name;
  std::uint32_t code = 0;
  std::string words;
  void fields(auto& a) { a(name, code, words); }
};

struct Decision {
  std::uint32_t epoch = 0;
  std::vector<Group> groups{};
  std::vector<Refusal> refusals{};
  bool gives_up = false;                  // all buckets, after the groups above
  std::vector<BucketNumbers> buckets{};   // from now on these are known by bucket, too
  std::vector<std::uint32_t> launches{};  // sets that have a turn each, after the groups above
  std::int32_t last_joined = -1;          // all ranks have joined, this one last: they work again
  std::int32_t leaving = -1;              // this rank has shut down; nothing is decided after it
  std::string ending{};                   // a stall ends the job, in these words; nor after this
  void fields(auto& a) {
    a(epoch, groups, refusals, gives_up, buckets, launches, last_joined, leaving, ending);
  }
  bool empty() const {
    return groups.empty() && refusals.empty() && !gives_up && buckets.empty() && launches.empty() &&
           last_joined < 0 && leaving < 0 && ending.empty();
  }
};

// The sender can go on no more, and neither can anybody else: passed on in every direction of the
// tree.
struct Failure {
  std::uint32_t epoch = 0;
  std::string words;
  void fields(auto& a) { a(epoch, words); }
};

// Down the tree, now and then while something is open: the sender still runs.
struct Alive {
  std::uint32_t epoch = 0;
  void fields(auto& a) { a(epoch); }
};

// Down the tree: where do these ranks stand? A later question has a larger number.
struct StallQuestion {
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;
  std::vector<std::uint32_t> ranks;
  void fields(auto& a) { a(epoch, number, ranks); }
};

// Up the tree: what one of them says.
struct StallAnswer {
  std::uint32_t epoch = 0;
  std::uint32_t number = 0;
  std::uint32_t rank = 0;
  std::string words;
  void fields(auto& a) { a(epoch, number, rank, words); }
};

template <class Message>
std::string encode_control(ControlType type, const Message& message) {
  return static_cast<char>(type) + encode(message);
}

}  // namespace hv::runtime
