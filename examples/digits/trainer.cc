// The training loop and its figures.
// SPDX-License-Identifier: Apache-2.0
#include "examples/digits/trainer.h"

#include <algorithm>
#include <chrono>
#include <cinttypes>
#include <cstdio>

namespace digits {
namespace {

constexpr float kMomentum = 0.9f;
// A learning rate for many ranks at once would throw freshly drawn weights off: it grows for some
// epochs.
constexpr int kWarmUpEpochs = 3;

// Adds the time until its end to a total.
class Stopwatch {
 public:
  explicit Stopwatch(double* total) : total_(total), start_(std::chrono::steady_clock::now()) {}
  ~Stopwatch() {
    *total_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  double* total_;
  std::chrono::steady_clock::time_point start_;
};

Images every_nth(const Images& all, int first, int step) {
  Images share;
  for (int i = first; i < all.count(); i += step) {
    const auto begin = all.pixels.begin() + std::ptrdiff_t{i} * kPixels;
    share.pixels.insert(share.pixels.end(), begin, begin + kPixels);
    share.labels.push_back(all.labels[i]);
  }
  return share;
}

}  // namespace

Trainer::Trainer(const TrainingOptions& options)
    : options_(options),
      dataset_(load_dataset(find_dataset(options.data))),
      network_({kPixels, 128, 64, kClasses}),
      progress_{options.seed, 0},
      exchange_(&network_) {
  test_share_ = every_nth(dataset_.test, session_.rank(), session_.size());
}

void Trainer::run() {
  agree_on_start();
  while (progress_.epochs_done < options_.epochs) {
    const EpochFigures figures = train_epoch(static_cast<int>(progress_.epochs_done));
    ++progress_.epochs_done;
    if (session_.rank() == 0 && !options_.checkpoint.empty())
      save_checkpoint(options_.checkpoint, network_, progress_);
    report_epoch(figures);
  }
  const Score tested = test();
  if (session_.rank() == 0)
    std::printf("test accuracy %.4f\n", double(tested.correct) / double(tested.images));
  std::printf("weights hash %016" PRIx64 "\n", network_.hash());
  std::fflush(stdout);
  session_.leave();
}

// Only rank 0 draws weights or reads a file; what it holds then is what every rank starts from.
void Trainer::agree_on_start() {
  if (session_.rank() == 0) {
    if (!options_.checkpoint.empty()) require_writable(options_.checkpoint);
    if (options_.resume && load_checkpoint(options_.checkpoint, &network_, &progress_))
      std::printf("resuming %s after epoch %" PRId64 "\n", options_.checkpoint.c_str(),
                  progress_.epochs_done);
    else
      network_.initialise(options_.seed);
  }
  std::vector<int64_t> progress = {static_cast<int64_t>(progress_.seed), progress_.epochs_done};
  session_.broadcast("progress", &progress);
  progress_ = {static_cast<uint64_t>(progress[0]), progress[1]};
  int number = 0;
  for (Layer& layer : network_.layers())
    for (auto* values :
         {&layer.weights.value, &layer.bias.value, &layer.weights.momentum, &layer.bias.momentum})
      session_.broadcast("initial values " + std::to_string(++number), values);
}

Trainer::EpochFigures Trainer::train_epoch(int epoch) {
  EpochFigures figures;
  const Stopwatch whole(&figures.seconds);
  Shard shard(dataset_.train, session_.rank(), session_.size(), options_.batch_size,
              progress_.seed);
  Images batch;
  for (int number = 0; number < shard.batches(); ++number) {
    {
      const Stopwatch waiting(&figures.data_seconds);
      if (number == 0) shard.start_epoch(epoch);
      shard.copy_batch(number, &batch);
    }
    train_step(batch, learning_rate(epoch + double(number) / shard.batches()), &figures);
  }
  return figures;
}

// Each layer's gradients travel while the layers below are still at theirs, and each layer is
// updated while the gradients below it still travel.
void Trainer::train_step(const Images& batch, double rate, EpochFigures* figures) {
  const Score score = network_.learn(batch, [&](int layer) {
    const Stopwatch waiting(&figures->communication_seconds);
    exchange_.start(layer);
  });
  figures->training.loss += score.loss;
  figures->training.images += score.images;
  for (int layer = static_cast<int>(network_.layers().size()) - 1; layer >= 0; --layer) {
    {
      const Stopwatch waiting(&figures->communication_seconds);
      exchange_.finish(layer);
    }
    network_.update(layer, static_cast<float>(rate), kMomentum);
  }
}

// A step over `size` batches may go `size` times as far (Goyal et al., "Accurate, Large Minibatch
// SGD", 2017, who also start at one rank's rate and let it grow).
double Trainer::learning_rate(double epochs) const {
  const double grown = std::min(1.0, epochs / kWarmUpEpochs);
  return options_.learning_rate * (1 + (session_.size() - 1) * grown);
}

Score Trainer::test() {
  const Score share = network_.score(test_share_);
  std::vector<double> sums = {share.loss, double(share.correct), double(share.images)};
  session_.sum("test score", &sums);
  return {sums[0], static_cast<int64_t>(sums[1]), static_cast<int64_t>(sums[2])};
}

void Trainer::report_epoch(const EpochFigures& figures) {
  std::vector<double> sums = {figures.training.loss, double(figures.training.images),
                              figures.data_seconds, figures.communication_seconds, figures.seconds};
  session_.sum("epoch figures", &sums);
  const Score tested = test();
  if (session_.rank() != 0) return;
  const double seconds = sums[4];  // of all ranks together
  std::printf("epoch %" PRId64
              "/%d  loss %.4f  test accuracy %.4f  %.0f images/s  waiting for data %.1f %%, for "
              "communication %.1f %%\n",
              progress_.epochs_done, options_.epochs, sums[0] / sums[1],
              double(tested.correct) / double(tested.images), sums[1] / (seconds / session_.size()),
              100 * sums[2] / seconds, 100 * sums[3] / seconds);
  std::fflush(stdout);
}

}  // namespace digits
