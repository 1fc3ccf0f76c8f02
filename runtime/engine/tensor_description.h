// What all ranks must agree on about one tensor's operation, as a value.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/device/element_type.h"

namespace hv::runtime {

// An allgather's first extent is each rank's own affair: here it stands as kVaries, beside it as a
// number.
constexpr std::int64_t kVaries = -1;
constexpr std::size_t kMostDimensions = 64;

struct TensorDescription {
  CollectiveKind kind = CollectiveKind::kBarrier;
  ElementType type = ElementType::kUint8;
  Reduction reduction = Reduction::kSum;  // kSum where nothing is reduced
  std::int32_t root = 0;                  // 0 where there is none
  double prescale = 1;
  double postscale = 1;
  std::vector<std::int64_t> shape;

  bool operator==(const TensorDescription&) const = default;
  // Elements of one rank's tensor; for an allgather those of one row.
  std::int64_t elements() const;
  std::int64_t bytes() const;
  // False for numbers that no rank of this build sends.
  bool is_valid() const;

  template <class Archive>
  void fields(Archive& a) {
    a(kind);
    a(type);
    a(reduction);
    a(root);
    a(prescale);
    a(postscale);
    a(shape);
  }
};

const char* collective_name(CollectiveKind kind);
// "[3,4]"; a varying extent is "*".
std::string shape_text(const std::vector<std::int64_t>& shape);

}  // namespace hv::runtime
