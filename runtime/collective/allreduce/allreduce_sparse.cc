// Sparse allreduce: the rows of all ranks, each with its index, one rank's after the other.
// SPDX-License-Identifier: Apache-2.0
//
// Rows of one index are not added up: who uses the result does that as it applies them, as for
// duplicates of one rank. So it is two allgathers, of indices and of values, under way at once; an
// average or a scale is applied by each rank to its own values beforehand. Costs are allgather's.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/collective/allgather.h"
#include "runtime/collective/allreduce/allreduce.h"
#include "runtime/collective/ring_collective.h"

namespace hv::runtime {
namespace {

bool is_scaled(const CollectiveRequest& request) {
  return request.prescale != 1 || request.postscale != 1 || request.divisor != 1;
}

// This rank's values, scaled before and after: rounded to the type after each, as in an allreduce.
class ScaledValues {
 public:
  // values: of a request that scales.
  ScaledValues(const CollectiveRequest& request, const Segment& values, const Kernels& kernels)
      : input_(values.input),
        bytes_(static_cast<std::size_t>(values.count) * element_size(request.type)),
        element_bytes_(element_size(request.type)),
        prescale_(request.prescale),
        finish_(finish_of(request)),
        scale_(kernels.scale[static_cast<int>(request.type)]),
        reduce_(kernels.reduce_for(request.type, Reduction::kSum)),
        scaled_(std::make_unique_for_overwrite<std::byte[]>(bytes_)) {}

  const std::byte* data() const { return scaled_.get(); }
  // A piece of it. True: all is done.
  bool advance() {
    const std::size_t size = std::min(kPassBytes, bytes_ - done_), count = size / element_bytes_;
    const void* const at = scaled_.get() + done_;
    scale_(scaled_.get() + done_, input_ + done_, count, prescale_);
    reduce_(scaled_.get() + done_, &at, 1, count, finish_);
    done_ += size;
    return done_ == bytes_;
  }

 private:
  const std::byte* const input_;
  const std::size_t bytes_, element_bytes_;
  const double prescale_;
  const Finish finish_;
  const ScaleKernel scale_;
  const ReduceKernel reduce_;
  const std::unique_ptr<std::byte[]> scaled_;
  std::size_t done_ = 0;
};

class AllreduceSparse : public Collective {
 public:
  // scaled: what the gathers read; none: they read the request's values.
  AllreduceSparse(std::vector<std::unique_ptr<Collective>> gathers,
                  std::unique_ptr<ScaledValues> scaled)
      : scaled_(std::move(scaled)), gathers_(std::move(gathers)), is_scaled_(scaled_ == nullptr) {}

  Progress advance() override {
    if (!is_scaled_ && !(is_scaled_ = scaled_->advance())) return Progress::kPaused;
    bool is_done = true, has_moved = false;
    for (auto& gather : gathers_) {
      const Progress progress = gather->advance();
      if (progress == Progress::kFailed) {
        status_ = gather->status();
        return progress;
      }
      is_done &= progress == Progress::kDone;
      has_moved |= has_advanced(progress);
    }
    if (has_moved) return Progress::kAdvanced;
    return is_done ? Progress::kDone : Progress::kPending;
  }
  Status status() const override { return status_; }
  bool has_begun() const override {
    return std::any_of(gathers_.begin(), gathers_.end(),
                       [](const auto& gather) { return gather->has_begun(); });
  }

 private:
  const std::unique_ptr<ScaledValues> scaled_;
  std::vector<std::unique_ptr<Collective>> gathers_;
  bool is_scaled_;
  Status status_;
};

std::unique_ptr<Collective> gather(const CollectiveSetup& setup, ElementType type,
                                   const Segment& segment, std::int64_t row) {
  CollectiveRequest request;
  request.kind = CollectiveKind::kAllgather;
  request.type = type;
  request.segments = {segment};
  for (const std::int64_t rows : setup.request.counts_by_rank)
    request.counts_by_rank.push_back(rows * row);
  return allgather_pieces({setup.plane, setup.rings, setup.kernels, std::move(request)});
}

}  // namespace

std::unique_ptr<Collective> allreduce_sparse(CollectiveSetup setup) {
  const CollectiveRequest& request = setup.request;
  Segment values = request.segments[1];
  std::unique_ptr<ScaledValues> scaled;
  if (is_scaled(request) && values.count > 0) {
    scaled = std::make_unique<ScaledValues>(request, values, setup.kernels);
    values.input = scaled->data();
  }
  std::vector<std::unique_ptr<Collective>> gathers;
  gathers.push_back(gather(setup, request.index_type, request.segments[0], 1));
  gathers.push_back(gather(setup, request.type, values, request.row_counts[0]));
  return std::make_unique<AllreduceSparse>(std::move(gathers), std::move(scaled));
}

}  // namespace hv::runtime
