// SPDX-License-Identifier: Apache-2.0
//
//   kReady    the callers' streams are not through yet with what comes before: nothing is given to
//             the device's work stream until then, in which it would hold up everything behind it
//   kCopyIn   the inputs are on their way to their room
//   kExchange the host's collective, which has had its place among the others from the start: ranks
//             whose inputs come late hold up what stands behind it, and all start in one order
//   kCopyOut  the results are on their way back
// The room of what is given up while a device copies goes back when that is done.
#include "runtime/backend/staged/staged_backend.h"

#include <algorithm>
#include <utility>
#include <vector>

namespace hv::runtime {
namespace {

class StagedCollective : public Collective {
 public:
  // staged: the same for the host's backend, but for its segments.
  StagedCollective(Backend& host, CollectiveRequest request, CollectiveRequest staged)
      : given_(std::move(request)), is_on_device_(staged.is_out_of_reach) {
    staged.accelerator = nullptr;
    staged.ready.clear();
    pieces_.resize(given_.segments.size());
    for (std::size_t i = 0; i < pieces_.size() && status_.ok(); ++i)
      status_ = make_pinned(i, &staged.segments[i]);
    if (given_.make_room)
      staged.make_room = [this](const std::vector<std::int64_t>& received) {
        return make_room(received);
      };
    for (const Piece& piece : pieces_)
      for (const MemoryPtr& memory : {piece.input, piece.output})
        if (memory != nullptr) staged.keeps.push_back(memory);
    if (status_.ok()) exchange_ = host.start(std::move(staged));
  }
  ~StagedCollective() override {
    if (stage_ == Stage::kExchange) {
      leave_to_exchange();
      return;
    }
    for (const DeviceMoment& one : moments_)
      for (const Piece& piece : pieces_) keep(one, piece);
  }
  StagedCollective(const StagedCollective&) = delete;
  StagedCollective& operator=(const StagedCollective&) = delete;

  Progress advance() override {
    if (!status_.ok()) return Progress::kFailed;
    switch (stage_) {
      case Stage::kReady:
        return await_callers();
      case Stage::kCopyIn:
        return await_copies(Stage::kExchange);
      case Stage::kExchange:
        return advance_exchange();
      case Stage::kCopyOut:
        return await_copies(Stage::kDone);
      case Stage::kDone:
        break;
    }
    return Progress::kDone;
  }
  Status status() const override { return status_; }
  // Of copies that are under way, where it is given up: they write to callers' memory.
  MomentPtr ended() const override {
    return stage_ == Stage::kCopyOut && !moments_.empty() ? moments_.back().moment : nullptr;
  }
  bool has_begun() const override { return stage_ > Stage::kCopyIn && exchange_->has_begun(); }
  Attention attention() const override {
    return stage_ == Stage::kExchange ? exchange_->attention() : Attention::kPolled;
  }

 private:
  enum class Stage { kReady, kCopyIn, kExchange, kCopyOut, kDone };
  // What stands for a segment on the host; both nullptr: it lies there itself.
  struct Piece {
    MemoryPtr input, output;
    std::size_t input_bytes = 0, output_bytes = 0;
    std::byte* target = nullptr;
    int device = kHostDevice;
  };
  struct DeviceMoment {
    int device;
    MomentPtr moment;
  };

  Accelerator& accelerator() const { return *given_.accelerator; }

  // kHostDevice on a rank that has joined.
  int first_device() const {
    const auto there = std::find_if(pieces_.begin(), pieces_.end(),
                                    [](const Piece& piece) { return piece.device != kHostDevice; });
    return there == pieces_.end() ? kHostDevice : there->device;
  }

  // A sparse allreduce's segments are indices and values in turn.
  std::size_t element_bytes(std::size_t segment) const {
    const bool is_index = given_.kind == CollectiveKind::kSparseAllreduce && segment % 2 == 0;
    return element_size(is_index ? given_.index_type : given_.type);
  }

  Status make_pinned(std::size_t number, Segment* segment) {
    Piece& piece = pieces_[number];
    piece.device = segment->device;
    if (piece.device == kHostDevice) return Status::success();
    segment->device = kHostDevice;
    if (segment->input != nullptr)
      piece.input_bytes = static_cast<std::size_t>(segment->count) * element_bytes(number);
    piece.output_bytes = segment->output != nullptr ? segment->output_bytes : 0;
    piece.target = segment->output;
    const std::size_t output_room = is_in_place(*segment)
                                        ? std::max(piece.input_bytes, piece.output_bytes)
                                        : piece.output_bytes;
    if (Status status = take(piece.device, output_room, &piece.output); !status.ok()) return status;
    if (is_in_place(*segment)) {
      piece.input = piece.output;
    } else if (Status status = take(piece.device, piece.input_bytes, &piece.input); !status.ok()) {
      return status;
    }
    segment->input = piece.input.get();
    segment->output = piece.output.get();
    return Status::success();
  }

  // What only hands addresses on moves nothing aside: a broadcast has one place, all else two.
  bool is_in_place(const Segment& segment) const {
    if (is_on_device_) return given_.kind == CollectiveKind::kBroadcast;
    return segment.input == segment.output && segment.input != nullptr;
  }

  Status take(int device, std::size_t bytes, MemoryPtr* made) {
    const auto room = is_on_device_ ? Accelerator::Room::kDevice : Accelerator::Room::kPinned;
    return bytes == 0 ? Status::success() : accelerator().allocate(device, room, bytes, made);
  }
  Accelerator::Way in() const {
    return is_on_device_ ? Accelerator::Way::kOnDevice : Accelerator::Way::kToHost;
  }
  Accelerator::Way out() const {
    return is_on_device_ ? Accelerator::Way::kOnDevice : Accelerator::Way::kToDevice;
  }

  Status copy_in() {
    for (std::size_t i = 0; i < pieces_.size(); ++i) {
      const Piece& piece = pieces_[i];
      if (piece.input_bytes == 0) continue;
      if (Status status = accelerator().copy(piece.device, in(), piece.input.get(),
                                             given_.segments[i].input, piece.input_bytes);
          !status.ok())
        return status;
    }
    return mark_ends();
  }

  // What they were given before may write to an output, too.
  Progress await_callers() {
    for (; passed_ < given_.ready.size(); ++passed_) {
      const Status passed = accelerator().poll(*given_.ready[passed_]);
      if (passed.code == StatusCode::kInProgress) return Progress::kPending;
      if (!passed.ok()) return fail(passed);
    }
    if (Status status = copy_in(); !status.ok()) return fail(status);
    stage_ = Stage::kCopyIn;
    return Progress::kAdvanced;
  }

  // Of all that the devices have been given.
  Status mark_ends() {
    moments_.clear();
    passed_ = 0;
    for (const Piece& piece : pieces_) {
      const bool is_known = std::any_of(moments_.begin(), moments_.end(), [&](const auto& one) {
        return one.device == piece.device;
      });
      if (piece.device == kHostDevice || is_known) continue;
      MomentPtr moment;
      if (Status status = accelerator().mark_work(piece.device, &moment); !status.ok())
        return status;
      moments_.push_back({piece.device, std::move(moment)});
    }
    return Status::success();
  }

  Progress await_copies(Stage next) {
    for (; passed_ < moments_.size(); ++passed_) {
      const Status passed = accelerator().poll(*moments_[passed_].moment);
      if (passed.code == StatusCode::kInProgress) return Progress::kPending;
      if (!passed.ok()) return fail(passed);
    }
    stage_ = next;
    return next == Stage::kDone ? Progress::kDone : Progress::kAdvanced;
  }

  // What takes a device's addresses calls CUDA itself.
  Progress advance_exchange() {
    Progress progress = Progress::kPending;
    const auto advance = [&] {
      progress = exchange_->advance();
      return Status::success();
    };
    const int device = first_device();
    const Status there =
        is_on_device_ && device != kHostDevice ? accelerator().within(device, advance) : advance();
    if (!there.ok()) return fail(there);
    if (progress == Progress::kFailed && status_.ok()) status_ = exchange_->status();
    if (progress != Progress::kDone) return progress;
    if (Status status = copy_out(); !status.ok()) return fail(status);
    stage_ = Stage::kCopyOut;
    return Progress::kAdvanced;
  }

  Status copy_out() {
    for (const Piece& piece : pieces_) {
      if (piece.output_bytes == 0) continue;
      if (Status status = accelerator().copy(piece.device, out(), piece.target, piece.output.get(),
                                             piece.output_bytes);
          !status.ok())
        return status;
    }
    return mark_ends();
  }

  // An alltoall's: on the device, and what stands for it here.
  std::byte* make_room(const std::vector<std::int64_t>& received) {
    Piece& piece = pieces_.front();
    piece.target = given_.make_room(received);
    if (piece.target == nullptr || piece.device == kHostDevice) return piece.target;
    std::int64_t rows = 0;
    for (const std::int64_t one : received) rows += one;
    piece.output_bytes =
        static_cast<std::size_t>(rows * given_.row_counts.front()) * element_size(given_.type);
    const Status taken = take(piece.device, piece.output_bytes, &piece.output);
    return taken.ok() ? piece.output.get() : nullptr;
  }

  Progress fail(const Status& why) {
    status_ = why;
    return Progress::kFailed;
  }

  // An alltoall's results had no room yet when the exchange was told what it needs. One that is
  // given up may write there for ever, as MPI does.
  void leave_to_exchange() {
    if (given_.kind == CollectiveKind::kAlltoall && pieces_.front().output != nullptr)
      (void)new auto(std::move(pieces_.front().output));
  }

  void keep(const DeviceMoment& end, const Piece& piece) {
    if (piece.device != end.device) return;
    for (const MemoryPtr& memory : {piece.input, piece.output})
      if (memory != nullptr) accelerator().keep_until(end.moment, memory);
  }

  const CollectiveRequest given_;
  const bool is_on_device_;            // pieces are
  std::vector<Piece> pieces_;          // by segment
  std::vector<DeviceMoment> moments_;  // of the last copies
  std::size_t passed_ = 0;             // so many of those, or of the callers', have
  std::unique_ptr<Collective> exchange_;
  Stage stage_ = Stage::kReady;
  Status status_;
};

}  // namespace

// An allocation is nobody's but this rank's: no more than a barrier.
CollectiveRequest StagedBackend::for_host(CollectiveRequest request) const {
  if (request.kind == CollectiveKind::kAllocate) return {};
  request.memory = MemoryKind::kHost;
  request.is_out_of_reach = room_ == Accelerator::Room::kDevice;
  return request;
}

bool StagedBackend::supports(const CollectiveRequest& request) const {
  const bool allocates = request.kind == CollectiveKind::kAllocate;
  return request.memory != MemoryKind::kHost &&
         !(allocates && room_ == Accelerator::Room::kDevice) && host_.supports(for_host(request));
}

std::unique_ptr<Collective> StagedBackend::start(CollectiveRequest request) {
  CollectiveRequest staged = for_host(request);
  if (request.kind == CollectiveKind::kAllocate) return host_.start(std::move(staged));
  return std::make_unique<StagedCollective>(host_, std::move(request), std::move(staged));
}

}  // namespace hv::runtime
