// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/faults.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace hv::fake {
namespace {

std::string variable(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

[[noreturn]] void refuse(const std::string& word) {
  std::fprintf(stderr, "stand-in for CUDA: HVRUN_FAKE_CUDA_FAULTS has '%s'\n", word.c_str());
  std::abort();
}

}  // namespace

// Never destroyed: streams outlive main().
Faults& Faults::of_process() {
  static Faults* const faults = new Faults;
  return *faults;
}

Faults::Faults() {
  read(variable("HVRUN_FAKE_CUDA_FAULTS"));
  if (const std::string most = variable("HVRUN_FAKE_CUDA_DELAY_US"); !most.empty())
    most_delay_us_ = std::stoll(most);
  const std::string seed = variable("HVRUN_FAKE_CUDA_SEED");
  random_.seed(seed.empty() ? 1 : static_cast<unsigned>(std::stoul(seed)));
}

void Faults::read(const std::string& list) {
  std::istringstream words(list);
  for (std::string word; std::getline(words, word, ',');) {
    const std::size_t at = word.find('@'), is = word.find('=');
    if (at == std::string::npos || is == std::string::npos || is < at) refuse(word);
    const std::string how = word.substr(is + 1);
    const Fault fault = how == "hang" ? Fault{Way::kHang, 0} : Fault{Way::kResult, std::stoi(how)};
    faults_[{word.substr(0, at), std::stoi(word.substr(at + 1, is - at - 1))}] = fault;
  }
}

void Faults::begin_anew(const std::string& list) {
  const std::lock_guard lock(mutex_);
  faults_.clear();
  calls_.clear();
  read(list);
}

Faults::Fault Faults::take(const std::string& function) {
  const std::lock_guard lock(mutex_);
  const auto found = faults_.find({function, ++calls_[function]});
  return found == faults_.end() ? Fault{} : found->second;
}

std::chrono::microseconds Faults::next_delay() {
  const std::lock_guard lock(mutex_);
  if (most_delay_us_ <= 0) return std::chrono::microseconds(0);
  return std::chrono::microseconds(
      std::uniform_int_distribution<std::int64_t>(0, most_delay_us_)(random_));
}

}  // namespace hv::fake
