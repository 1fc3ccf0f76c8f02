// The store of ranks that one process forks: tables in shared anonymous memory. Tests link it, too.
// SPDX-License-Identifier: Apache-2.0
//
// Made before the forks; each child then takes its rank's store. The parent plays the agent.
#pragma once

#include <memory>
#include <string>

#include "src/rendezvous/store.h"

namespace hv {

class ForkedStoreHub {
 public:
  explicit ForkedStoreHub(int size, const JobKey& key = random_key());
  ~ForkedStoreHub();
  ForkedStoreHub(const ForkedStoreHub&) = delete;
  ForkedStoreHub& operator=(const ForkedStoreHub&) = delete;

  // In the child of that rank, once.
  std::unique_ptr<Store> store(int rank);
  // In the parent: tells the other ranks.
  void announce_loss(int rank, const std::string& reason);

 private:
  struct Tables;
  Tables* tables_;
  JobKey key_;
  int size_;
  friend class ForkedStore;
};

}  // namespace hv
