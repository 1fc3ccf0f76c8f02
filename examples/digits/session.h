// What the training says to the other ranks: a thin layer over hvrun.h in which every call is
// checked.
// SPDX-License-Identifier: Apache-2.0
//
// A failed call throws std::runtime_error with hvrun's own words; there is nothing to retry, for a
// rank that is lost does not come back.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "examples/digits/network.h"
#include "hvrun/hvrun.h"

namespace digits {

// Membership in the job. Whatever buffers hvrun works on must outlive it: declare them first.
class Session {
 public:
  Session();
  // Ends what is still pending, so that no buffer is in use afterwards.
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  int rank() const { return rank_; }
  int size() const { return size_; }

  // Every rank receives rank 0's values.
  void broadcast(const std::string& name, std::vector<float>* values);
  void broadcast(const std::string& name, std::vector<int64_t>* values);
  void sum(const std::string& name, std::vector<double>* values);
  // Leaves the job together with the others; the session is of no use afterwards.
  void leave();

 private:
  int rank_ = 0;
  int size_ = 1;
  bool joined_ = false;
};

// Averages a network's gradients over all ranks while the backward pass still runs.
class GradientExchange {
 public:
  explicit GradientExchange(Network* network);

  // Hands the layer's gradients to hvrun and returns at once.
  void start(int layer);
  // Returns when the layer's gradients are the average over all ranks.
  void finish(int layer);

 private:
  struct Pending {
    std::string name;
    std::vector<float>* gradient;
    int64_t length;
    hvrun_handle handle;
  };
  void enqueue(Pending* pending);
  void wait(Pending* pending);

  std::vector<std::vector<Pending>> layers_;  // [layer]: its weights and its bias
};

}  // namespace digits
