// The store of ranks that meet through an Exchange: what each puts travels with its next fence.
// SPDX-License-Identifier: Apache-2.0
//
// No agent watches these ranks: there are no events, and who is lost the peers find out by
// themselves.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "src/rendezvous/exchange.h"
#include "src/rendezvous/store.h"

namespace hv {

class GatheredStore : public Store {
 public:
  struct Meeting {
    std::string job_id;              // which rank 0 has made up, as it has the job's key
    std::vector<std::string> hosts;  // of the ranks
    int epoch = 0;                   // as rank 0 has given it
  };
  // All ranks meet for the first time. host: names this one, alike on its ranks and on no other.
  // epoch: how often this process has met others, who may have met more or less often.
  // exchange may serve several stores, one after the other.
  static Status meet(std::shared_ptr<Exchange> exchange, const std::string& host,
                     const WaitLimits& limits, int epoch, std::unique_ptr<Store>* store,
                     Meeting* meeting);

  Status put(const std::string& key, const std::string& value) override;
  Status fence(std::chrono::milliseconds timeout) override;
  Status get(int rank, const std::string& key, std::string* value) override;
  Status job_key(JobKey* key) override;
  void report(const RankReport&) override {}
  int event_fd() const override { return -1; }
  bool next_event(PeerEvent*) override { return false; }

 private:
  GatheredStore(std::shared_ptr<Exchange> exchange, JobKey key, std::chrono::milliseconds stall)
      : exchange_(std::move(exchange)), key_(std::move(key)), stall_(stall) {}

  using Table = std::map<std::string, std::string>;
  const std::shared_ptr<Exchange> exchange_;
  const JobKey key_;
  const std::chrono::milliseconds stall_;  // WaitLimits's
  Table unfenced_;
  std::vector<Table> tables_;  // by rank
};

}  // namespace hv
