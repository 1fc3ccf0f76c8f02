// MpiCollective: a request as calls of MPI that do not block, asked after until they are done.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "runtime/backend/backend.h"
#include "runtime/backend/mpi/mpi_lane.h"
#include "runtime/collective/collective.h"

namespace hv::mpi {

// Most elements or bytes of one call: its counts are ints.
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

class MpiCollective : public runtime::Collective {
 public:
  // Of one lane: kTurn: they begin in the order in which they are made; kNone: at any time.
  enum class Order { kTurn, kNone };
  MpiCollective(std::shared_ptr<MpiLane> lane, runtime::CollectiveRequest request,
                Order order = Order::kTurn)
      : lane_(std::move(lane)), request_(std::move(request)) {
    if (order == Order::kTurn) turn_ = lane_->take_turn();
  }

  ~MpiCollective() override;
  MpiCollective(const MpiCollective&) = delete;
  MpiCollective& operator=(const MpiCollective&) = delete;

  runtime::Progress advance() override;
  Status status() const override { return status_; }
  runtime::Attention attention() const override { return runtime::Attention::kDriven; }
  bool has_begun() const override { return has_begun_; }

 protected:
  // Asks MPI, by ask(). Its memory stays until all of it is done.
  virtual Status begin() = 0;
  // What was asked for is done, but for overlap() calls. is_done stays true unless more is to come.
  virtual Status go_on(bool* is_done) = 0;
  // Calls of MPI's, the last ones, that may be under way while it goes on.
  virtual std::size_t overlap() const { return 0; }
  // No more collectives of MPI's will be asked for: those behind it may begin.
  virtual bool has_asked_all() const { return true; }

  // call(MPI_Request*), of MPI's that begin something.
  template <class Call>
  Status ask(const char* doing, Call&& call) {
    MPI_Request one = MPI_REQUEST_NULL;
    Status status = check(call(&one), doing);
    if (status.ok()) asked_.push_back(one);
    return status;
  }

  const runtime::CollectiveRequest& request() const { return request_; }
  MpiLane& lane() { return *lane_; }
  MPI_Comm comm() const { return lane_->communicator(); }
  int members() const { return lane_->members(); }
  int self() const { return lane_->self(); }
  std::size_t element_bytes() const { return runtime::element_size(request_.type); }
  std::byte* take_room(std::size_t bytes);
  // There as long as MPI may read or write it.
  void keep(std::shared_ptr<const void> memory) { kept_.push_back(std::move(memory)); }

 private:
  runtime::Progress in_trouble();
  void begin_or_go_on(bool* is_done);
  void end_turn();
  void test();

  const std::shared_ptr<MpiLane> lane_;
  runtime::CollectiveRequest request_;
  std::optional<std::uint64_t> turn_;  // until it has ended
  bool has_begun_ = false;
  std::vector<std::shared_ptr<const void>> kept_;
  std::deque<MPI_Request> asked_;
  Status status_;
  runtime::PeersEnd peers_end_;
};

// Calls part(offset, count) for parts of what one call of MPI's can take.
template <class Part>
Status for_each_part(std::size_t count, Part&& part) {
  for (std::size_t at = 0; at < count; at += kMostAtOnce)
    if (Status status = part(at, std::min(kMostAtOnce, count - at)); !status.ok()) return status;
  return Status::success();
}

// Of a kind that MpiBackend supports.
std::unique_ptr<runtime::Collective> start_operation(std::shared_ptr<MpiLane> lane,
                                                     runtime::CollectiveRequest request);

}  // namespace hv::mpi
