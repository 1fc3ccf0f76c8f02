// main() of a fuzz target without libFuzzer: its corpus, then seeded mutations of it.
// SPDX-License-Identifier: Apache-2.0
//
//   fuzz_x --corpus DIR     every file of DIR and every seed, then 20,000 x HVRUN_TEST_SCALE
//                           mutations
//   fuzz_x FILE...          these inputs only: to repeat a failure
//   fuzz_x --write DIR      the seeds that are made in code, as files, for libFuzzer
// HVRUN_TEST_SEED repeats a run. Each input is in the file "<program>.input" of the current folder
// before it is tried, so that one that crashes, hangs or takes too much memory is there afterwards;
// nothing is left when all is well.
#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/mutator.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// A sanitizer reserves terabytes of addresses, so it is told the limit of memory itself.
extern "C" const char* __asan_default_options() {
  return "max_allocation_size_mb=2048:hard_rss_limit_mb=4096:detect_stack_use_after_return=0";
}
static constexpr bool kLimitsAddresses = false;
#else
static constexpr bool kLimitsAddresses = true;
#endif

namespace hv::fuzz {
namespace {

constexpr double kMutations = 20000;
constexpr unsigned kMostSeconds = 20;  // of one input, on a machine that is busy with other things
constexpr rlim_t kMostMemory = 2ull << 30;

void say_it_hangs(int) {
  constexpr std::string_view kWords = "fuzz: no end of this input within its time\n";
  (void)!::write(2, kWords.data(), kWords.size());
  std::abort();
}

double number_in(const char* variable, double otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtod(text, nullptr) : otherwise;
}

std::string read(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  HV_CHECK(stream, "an input can be read: " + file.string());
  return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
}

std::vector<std::string> inputs_in(const std::string& folder) {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  std::vector<std::string> inputs;
  for (const auto& file : files) inputs.push_back(read(file));
  return inputs;
}

// The input under trial, where it outlives this process.
class Trial {
 public:
  explicit Trial(std::string file)
      : file_(std::move(file)),
        fd_(::open(file_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644)) {
    HV_CHECK(fd_ >= 0, "the input's file can be written: " + file_);
  }
  void run(const std::string& input) {
    const bool written = ::ftruncate(fd_, 0) == 0 && ::pwrite(fd_, input.data(), input.size(), 0) ==
                                                         static_cast<ssize_t>(input.size());
    HV_CHECK(written, "the input's file can be written: " + file_);
    try_out(input);
  }
  void forget() { ::unlink(file_.c_str()); }
  // A copy of exactly that size, so that a sanitizer sees a byte too many.
  static void try_out(const std::string& input) {
    const std::vector<std::uint8_t> bytes(input.begin(), input.end());
    ::alarm(kMostSeconds);
    LLVMFuzzerTestOneInput(bytes.data(), bytes.size());
    ::alarm(0);
  }

 private:
  std::string file_;
  int fd_;
};

void fuzz(const std::string& program, const std::string& folder) {
  const auto begun = std::chrono::steady_clock::now();
  std::vector<std::string> pool = inputs_in(folder);
  HV_CHECK(!pool.empty(), "a target has a corpus: " + folder);
  if (seeds) {
    for (std::string& seed : seeds()) pool.push_back(std::move(seed));
  }
  const auto seed = static_cast<std::uint64_t>(
      number_in("HVRUN_TEST_SEED", static_cast<double>(std::random_device{}())));
  const auto count = static_cast<std::uint64_t>(kMutations * number_in("HVRUN_TEST_SCALE", 1));
  const std::string file = program + ".input";
  std::printf("fuzz: HVRUN_TEST_SEED=%llu; an input that fails is in %s/%s\n",
              static_cast<unsigned long long>(seed), std::filesystem::current_path().c_str(),
              file.c_str());
  std::fflush(stdout);
  Trial trial(file);
  for (const std::string& input : pool) trial.run(input);
  Mutator mutator(pool, seed);
  for (std::uint64_t i = 0; i < count; ++i) trial.run(mutator.next());
  trial.forget();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begun;
  std::printf("fuzz: %zu inputs and %llu mutations in %.1f s\n", pool.size(),
              static_cast<unsigned long long>(count), took.count());
}

void write_seeds(const std::string& folder) {
  if (!seeds) return;
  int number = 0;
  for (const std::string& seed : seeds())
    std::ofstream(folder + "/seed-" + std::to_string(++number), std::ios::binary) << seed;
}

void limit_memory() {
  if (!kLimitsAddresses) return;
  const rlimit limit{kMostMemory, kMostMemory};
  HV_CHECK(::setrlimit(RLIMIT_AS, &limit) == 0, "memory can be limited");
}

}  // namespace
}  // namespace hv::fuzz

int main(int argc, char** argv) {
  const std::vector<std::string> words(argv + 1, argv + argc);
  std::signal(SIGALRM, hv::fuzz::say_it_hangs);
  hv::fuzz::limit_memory();
  if (words.size() == 2 && words[0] == "--corpus") {
    hv::fuzz::fuzz(std::filesystem::path(argv[0]).filename(), words[1]);
  } else if (words.size() == 2 && words[0] == "--write") {
    hv::fuzz::write_seeds(words[1]);
  } else {
    for (const std::string& word : words) hv::fuzz::Trial::try_out(hv::fuzz::read(word));
  }
  return 0;
}
