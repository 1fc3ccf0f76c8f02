// SPDX-License-Identifier: Apache-2.0
#include "tests/fakes/cuda/faults.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace hv::fake {
namespace {

std::string variable(const std::string& name) {
  const char* const value = std::getenv(name.c_str());
  return value == nullptr ? "" : value;
}

}  // namespace

Faults::Faults(const std::string& library) : library_(library) {
  const std::string prefix = "HVRUN_FAKE_" + library + "_";
  read(variable(prefix + "FAULTS"));
  if (const std::string most = variable(prefix + "DELAY_US"); !most.empty())
    most_delay_us_ = std::stoll(most);
  const std::string seed = variable(prefix + "SEED");
  random_.seed(seed.empty() ? 1 : static_cast<unsigned>(std::stoul(seed)));
}

void Faults::refuse(const std::string& word) const {
  std::fprintf(stderr, "stand-in for %s: HVRUN_FAKE_%s_FAULTS has '%s'\n", library_.c_str(),
               library_.c_str(), word.c_str());
  std::abort();
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

int Faults::calls(const std::string& function) {
  const std::lock_guard lock(mutex_);
  return calls_[function];
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
