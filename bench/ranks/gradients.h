// A model's list of gradients: one a line, its name and its extents, in the order of the layers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

namespace bench {

struct Gradient {
  std::string name;
  std::vector<std::int64_t> shape;

  std::size_t elements() const {
    std::size_t count = 1;
    for (const std::int64_t extent : shape) count *= static_cast<std::size_t>(extent);
    return count;
  }
};

// Ends the program where the file cannot be read: lists are part of the sources.
inline std::vector<Gradient> read_gradients(const std::string& path) {
  std::ifstream file(path);
  std::vector<Gradient> gradients;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Gradient gradient;
    words >> gradient.name;
    for (std::int64_t extent; words >> extent;) gradient.shape.push_back(extent);
    gradients.push_back(std::move(gradient));
  }
  if (gradients.empty()) {
    std::fprintf(stderr, "%s: no gradients in it\n", path.c_str());
    std::exit(1);
  }
  return gradients;
}

}  // namespace bench
