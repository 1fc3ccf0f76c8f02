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

#include "runtime/engine/tensor_description.h"
#include "src/wire/codec.h"

namespace hv::runtime {

enum class ControlType : std::uint8_t { kReport = 1, kDecision = 2, kFailure = 3, kAlive = 4 };

// Some ranks say the same of one tensor.
struct Variant {
  TensorDescription description;
  std::vector<std::uint32_t> ranks;
  std::vector<std::int64_t>
      first_extents;  // allgather: those ranks' own, in their order; else empty
  template <class Archive>
  void fields(Archive& a) {
    a(description);
    a(ranks);
    a(first_extents);
  }
};

// Every rank of the sender's subtree has this tensor ready. More than one variant: they disagree.
struct FreshReport {
  std::string name;
  std::vector<Variant> variants;
  template <class Archive>
  void fields(Archive& a) {
    a(name);
    a(variants);
  }
};

// Some ranks of the sender's subtree have had this tensor ready for long, others not.
struct PartialReport {
  std::string name;
  std::uint64_t waited_ms = 0;
  std::vector<std::uint32_t> missing;
  std::vector<std::uint32_t> silent;  // see Waiting
  template <class Archive>
  void fields(Archive& a) {
    a(name);
    a(waited_ms);
    a(missing);
    a(silent);
  }
};

struct Report {
  std::uint32_t epoch = 0;
  std::uint64_t decisions = 0;         // that the sender has applied: so far it knows the cache
  std::vector<std::uint64_t> numbers;  // cached tensors that are ready in the whole subtree
  std::vector<FreshReport> fresh;
  std::vector<PartialReport> partial;
  std::vector<std::uint32_t> leaving;  // ranks that want to shut down
  template <class Archive>
  void fields(Archive& a) {
    a(epoch);
    a(decisions);
    a(numbers);
    a(fresh);
    a(partial);
    a(leaving);
  }
  bool empty() const {
    return numbers.empty() && fresh.empty() && partial.empty() && leaving.empty();
  }
};

struct FreshTensor {
  std::string name;
  std::vector<std::int64_t> first_extents;  // allgather: by rank
  template <class Archive>
  void fields(Archive& a) {
    a(name);
    a(first_extents);
  }
};

// Tensors that travel together, in this order: the cached ones, then the fresh ones.
struct Group {
  std::vector<std::uint64_t> numbers;
  std::vector<FreshTensor> fresh;
  template <class Archive>
  void fields(Archive& a) {
    a(numbers);
    a(fresh);
  }
};

// This tensor fails on every rank; the job goes on.
struct Refusal {
  std::string name;
  std::uint32_t code = 0;
  std::string words;
  template <class Archive>
  void fields(Archive& a) {
    a(name);
    a(code);
    a(words);
  }
};

struct Decision {
  std::uint32_t epoch = 0;
  std::vector<Group> groups;
  std::vector<Refusal> refusals;
  std::int32_t leaving = -1;  // this rank has shut down; nothing is decided after it
  template <class Archive>
  void fields(Archive& a) {
    a(epoch);
    a(groups);
    a(refusals);
    a(leaving);
  }
  bool empty() const { return groups.empty() && refusals.empty() && leaving < 0; }
};

// The sender can go on no more, and neither can anybody else: passed on in every direction of the
// tree.
struct Failure {
  std::uint32_t epoch = 0;
  std::string words;
  template <class Archive>
  void fields(Archive& a) {
    a(epoch);
    a(words);
  }
};

// Down the tree, now and then while something is open: the sender still runs.
struct Alive {
  std::uint32_t epoch = 0;
  template <class Archive>
  void fields(Archive& a) {
    a(epoch);
  }
};

template <class Message>
std::string encode_control(ControlType type, const Message& message) {
  return static_cast<char>(type) + encode(message);
}

}  // namespace hv::runtime
