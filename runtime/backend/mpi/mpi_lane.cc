// SPDX-License-Identifier: Apache-2.0
#include "runtime/backend/mpi/mpi_lane.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <utility>

namespace hv::mpi {
namespace {

// As many bytes of spare rooms: what is given back to the system costs a fault a page next time.
constexpr std::size_t kMostSpareBytes = std::size_t{512} << 20;
constexpr int kFirstTag = 1 << 13;

}  // namespace

MpiLane::MpiLane(std::vector<int> world_ranks, int self, std::function<void()> ring)
    : world_ranks_(std::move(world_ranks)), self_(self), ring_(std::move(ring)) {
  MpiProcess::of_process().count_communicators(1);
}

std::shared_ptr<MpiLane> MpiLane::begin(std::vector<int> world_ranks, int self,
                                        std::function<void()> ring) {
  std::shared_ptr<MpiLane> lane(new MpiLane(std::move(world_ranks), self, std::move(ring)));
  MpiProcess::of_process().post([lane] {
    lane->make();
    lane->is_made_ = true;
    lane->ring();
  });
  return lane;
}

void MpiLane::ring() {
  const std::lock_guard lock(ring_mutex_);
  if (ring_) ring_();
}

void MpiLane::silence() {
  const std::lock_guard lock(ring_mutex_);
  ring_ = nullptr;
}

// Only its members are asked, whatever else there is in MPI's world.
void MpiLane::make() {
  MPI_Group world = MPI_GROUP_NULL, group = MPI_GROUP_NULL;
  made_ = check(MPI_Comm_group(MPI_COMM_WORLD, &world), "make a communicator");
  if (made_.ok())
    made_ =
        check(MPI_Group_incl(world, members(), world_ranks_.data(), &group), "make a communicator");
  if (made_.ok())
    made_ = check(MPI_Comm_create_group(MPI_COMM_WORLD, group, kFirstTag, &communicator_),
                  "make a communicator");
  if (made_.ok())
    made_ = check(MPI_Comm_set_errhandler(communicator_, MPI_ERRORS_RETURN), "make a communicator");
  int* last_tag = nullptr;
  int has_last_tag = 0;
  if (made_.ok())
    made_ = check(
        MPI_Comm_get_attr(MPI_COMM_WORLD, MPI_TAG_UB, static_cast<void*>(&last_tag), &has_last_tag),
        "make a communicator");
  if (made_.ok() && has_last_tag != 0) last_tag_ = *last_tag;
  if (group != MPI_GROUP_NULL) MPI_Group_free(&group);
  if (world != MPI_GROUP_NULL) MPI_Group_free(&world);
}

// In the order in which sets go, which is the same for all members.
MpiLane::~MpiLane() {
  MpiProcess& process = MpiProcess::of_process();
  process.post([&process, communicator = communicator_] {
    process.free(communicator);
    process.count_communicators(-1);
  });
}

// What was given up may leave a message behind, or a receive. A tag comes again after as many
// transfers of its sender as MPI has tags (Open MPI 4.1: 2^31, MPICH 4.0: 2^28): a message says its
// number itself, too.
int MpiLane::tag_of(std::uint64_t number) const {
  const auto tags = static_cast<std::uint64_t>(last_tag_ - kTags) + 1;
  return kTags + static_cast<int>(number % tags);
}

Status MpiLane::ready() const { return is_made_ ? made_ : Status{StatusCode::kInProgress, {}}; }

MpiLane::Room MpiLane::take_room(std::size_t bytes) {
  Spare taken;
  constexpr std::size_t kPage = 4096, kLarge = std::size_t{64} << 20;
  taken.bytes =
      bytes <= kLarge ? std::bit_ceil(std::max(bytes, kPage)) : (bytes + kPage - 1) / kPage * kPage;
  const auto fits = std::find_if(spare_.rbegin(), spare_.rend(),
                                 [&](const Spare& one) { return one.bytes == taken.bytes; });
  if (fits != spare_.rend()) {
    taken = std::move(*fits);
    spare_.erase(std::next(fits).base());
    spare_bytes_ -= taken.bytes;
  } else {
    taken.memory.reset(new std::byte[taken.bytes]);
  }
  auto* const memory = taken.memory.release();
  return {memory, [lane = weak_from_this(), size = taken.bytes](std::byte* back) {
            std::unique_ptr<std::byte[]> own(back);
            const std::shared_ptr<MpiLane> there = lane.lock();
            if (there == nullptr) return;
            if (there->is_given_up_) {
              (void)own.release();
            } else if (there->spare_bytes_ + size <= kMostSpareBytes) {
              there->spare_bytes_ += size;
              there->spare_.push_back({std::move(own), size});
            }
          }};
}

void MpiLane::give_up() {
  is_given_up_ = true;
  MpiProcess::of_process().give_up();
}

}  // namespace hv::mpi
