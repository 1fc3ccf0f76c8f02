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

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <sstream>
#include <string>

#include "examples/digits/trainer.h"

namespace {

// An option "--name N" with its limits, and its default at the end of its text.
template <typename Number>
void add_number(CLI::App* app, const char* name, Number* value, Number low, Number high,
                const char* text) {
  std::ostringstream whole;
  whole << text << " (default: " << *value << ")";
  app->add_option(name, *value, whole.str())
      ->check(CLI::Range(low, high).description(""))
      ->type_name("N");
}

void add_options(CLI::App* app, digits::TrainingOptions* options) {
  add_number(app, "--epochs", &options->epochs, 0, 1'000'000,
             "Times that every training image is seen");
  add_number(app, "--batch-size", &options->batch_size, 1, 1024, "Images per rank and step");
  add_number(app, "--learning-rate", &options->learning_rate, 0.0, 10.0,
             "Of one rank; multiplied by the number of ranks");
  add_number(app, "--seed", &options->seed, uint64_t{0}, uint64_t{INT64_MAX},
             "For the initial weights and the order of the images");
  app->add_option("--data", options->data,
                  "The file digits.txt; found by itself in a build or installation")
      ->type_name("FILE");
  auto* checkpoint = app->add_option("--checkpoint", options->checkpoint,
                                     "Rank 0 keeps the state here after every epoch")
                         ->type_name("FILE");
  app->add_flag("--resume", options->resume,
                "Go on from the checkpoint; start afresh if there is none")
      ->needs(checkpoint);
}

size_t equal_beginning(const std::string& a, const std::string& b) {
  size_t length = 0;
  while (length < a.size() && length < b.size() && a[length] == b[length]) ++length;
  return length;
}

// What the command line has too much, and the option that begins most like it.
std::string complaint(const CLI::App& app, const std::string& unknown) {
  std::string text = "unknown argument '" + unknown + "'";
  std::string nearest;
  size_t best = 2;  // more than the dashes
  for (const CLI::Option* option : app.get_options()) {
    const size_t equal = equal_beginning(option->get_name(), unknown);
    if (equal <= best) continue;
    best = equal;
    nearest = option->get_name();
  }
  if (!nearest.empty()) text += "; the nearest is " + nearest;
  return text + "; --help lists all options";
}

}  // namespace

int main(int argc, char** argv) {
  digits::TrainingOptions options;
  CLI::App app("Trains a small network on handwritten digits, data-parallel");
  add_options(&app, &options);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ExtrasError&) {
    std::fprintf(stderr, "train_digits: %s\n", complaint(app, app.remaining().front()).c_str());
    return 2;
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
