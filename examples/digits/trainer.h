// Data-parallel training: every rank learns from its own share, all ranks keep the same weights.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "examples/digits/checkpoint.h"
#include "examples/digits/dataset.h"
#include "examples/digits/network.h"
#include "examples/digits/session.h"

namespace digits {

struct TrainingOptions {
  int epochs = 20;
  int batch_size = 16;          // images per rank and step
  double learning_rate = 0.02;  // of one rank; the job's grows with its size
  uint64_t seed = 1;
  std::string data;        // empty: find_dataset() looks for it
  std::string checkpoint;  // empty: none is written
  bool resume = false;     // go on from `checkpoint` if it exists
};

class Trainer {
 public:
  explicit Trainer(const TrainingOptions& options);

  // Trains to the end; prints each epoch's figures on rank 0, and at the end every rank's hash.
  void run();

 private:
  // Where an epoch's time went and what it brought; summed over the ranks at its end.
  struct EpochFigures {
    Score training;
    double data_seconds = 0;
    double communication_seconds = 0;
    double seconds = 0;
  };

  void agree_on_start();
  EpochFigures train_epoch(int epoch);
  void train_step(const Images& batch, double rate, EpochFigures* figures);
  double learning_rate(double epochs) const;
  // Over all test images, each scored by one rank.
  Score test();
  void report_epoch(const EpochFigures& figures);

  // What hvrun works on comes before the session, which ends the use of it when it goes.
  TrainingOptions options_;
  Dataset dataset_;
  Network network_;
  Progress progress_;
  GradientExchange exchange_;
  Session session_;
  Images test_share_;
};

}  // namespace digits
