// Trains a small network on handwritten digits, data-parallel over as many ranks as hvrun starts.
// SPDX-License-Identifier: Apache-2.0
//
//   hvrun -np 2 ./train_digits                       on this machine
//   hvrun -H a:2,b:2 ./train_digits --epochs 40      on two hosts
//   hvrun -np 2 ./train_digits --checkpoint digits.ckpt --resume
//
// Alone, without hvrun, it is rank 0 of 1 and trains all the same. What concerns hvrun stands in
// digits/session.cc (the calls) and digits/trainer.cc (where in a training they belong).
#include <CLI/CLI.hpp>

#include <cstdio>
#include <exception>

#include "examples/digits/trainer.h"

namespace {

void add_options(CLI::App* app, digits::TrainingOptions* options) {
  app->add_option("--epochs", options->epochs, "Times that every training image is seen")
      ->check(CLI::Range(0, 1'000'000))
      ->capture_default_str();
  app->add_option("--batch-size", options->batch_size, "Images per rank and step")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  app->add_option("--learning-rate", options->learning_rate,
                  "Of one rank; multiplied by the number of ranks")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  app->add_option("--seed", options->seed, "For the initial weights and the order of the images")
      ->capture_default_str();
  app->add_option("--data", options->data,
                  "The file digits.txt; found by itself in a build or installation");
  auto* checkpoint = app->add_option("--checkpoint", options->checkpoint,
                                     "Rank 0 keeps the state here after every epoch");
  app->add_flag("--resume", options->resume,
                "Go on from the checkpoint; start afresh if there is none")
      ->needs(checkpoint);
}

}  // namespace

int main(int argc, char** argv) {
  digits::TrainingOptions options;
  CLI::App app("Trains a small network on handwritten digits, data-parallel");
  add_options(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  }
  try {
    digits::Trainer(options).run();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "train_digits: %s\n", error.what());
    return 1;
  }
  return 0;
}
