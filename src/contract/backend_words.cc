// SPDX-License-Identifier: Apache-2.0
#include "src/contract/backend_words.h"

#include <algorithm>

#include "src/base/text.h"

namespace hv {

bool is_backend_list(const std::string& text) {
  const std::vector<std::string> words = split(text, ',');
  return std::all_of(words.begin(), words.end(), [](const std::string& word) {
    const std::string_view name = trim(word);
    return name == "nccl" || name == "mpi" || name == "native";
  });
}

std::vector<std::string> backend_words(const std::string& list) {
  std::vector<std::string> words;
  for (const std::string_view word : split(list, ','))
    if (!trim(word).empty()) words.emplace_back(trim(word));
  return words;
}

bool names_mpi(const std::string& list) {
  const auto words = backend_words(list);
  return std::find(words.begin(), words.end(), "mpi") != words.end();
}

}  // namespace hv
