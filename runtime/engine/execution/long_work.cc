// SPDX-License-Identifier: Apache-2.0
#include "runtime/engine/execution/long_work.h"

#include <algorithm>
#include <utility>

#include "src/base/log.h"

namespace hv::runtime {

void LongWork::note_launch(std::uint64_t bucket, const std::string& what) {
  if (!launch_ || launch_->bucket != bucket) launch_ = {bucket, what, kUnseen};
}

void LongWork::give(const std::string& what, std::shared_ptr<Accelerator> accelerator,
                    MomentPtr ended) {
  std::optional<Given>& place = oldest_ ? latest_ : oldest_;
  place = {what, std::move(accelerator), std::move(ended), kUnseen};
}

Status LongWork::look_at_devices() {
  while (oldest_) {
    Status status = oldest_->accelerator->poll(*oldest_->ended);
    if (!status.ok()) return status;
    oldest_ = std::exchange(latest_, std::nullopt);
  }
  return Status::success();
}

Status LongWork::look(const std::string& advice, TimePoint time) {
  Status status = look_at_devices();
  if (!status.ok() && status.code != StatusCode::kInProgress) return status;
  if (!preparation_ && !launch_ && !oldest_) return Status::success();
  std::vector<Waiting> all;
  const auto note = [&](auto& work) {
    if (work) all.push_back({work->what, work->since = std::min(work->since, time), {}, {}});
  };
  note(preparation_);
  note(launch_);
  note(oldest_);
  for (const Waiting& late : tells_.news(tells_.inspect(all, time))) {
    HV_LOG(kWarn, "backend") << late.name << " has gone on for "
                             << format_duration(time - late.since) << "; try: " << advice
                             << what_ends_it(end_);
  }
  for (const Waiting& one : all) {
    if (end_ == Duration::zero() || time - one.since < end_) continue;
    return {StatusCode::kStalled,
            ending_words(one.name + " has gone on for " + format_duration(time - one.since), end_) +
                "; try: " + advice};
  }
  return {StatusCode::kInProgress, {}};
}

}  // namespace hv::runtime
