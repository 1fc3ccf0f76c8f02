// Reads a timeline's file in tests, as a viewer would, and checks its form.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

namespace hv::tests {

struct TraceFile {
  nlohmann::json events;
  std::map<int, std::string> rows;                       // by tid
  std::map<std::string, std::vector<std::string>> bars;  // by row: labels in order of their begin
  std::map<std::string, std::set<std::string>> marks;    // by row
  std::vector<nlohmann::json> buckets;                   // those that began
  int open_bars = 0;

  // Throws for what is no trace: bad JSON, an end without a begin, a begin without its row's name.
  explicit TraceFile(const std::string& path) {
    std::ifstream stream(path, std::ios::binary);
    events = nlohmann::json::parse(std::string(std::istreambuf_iterator<char>(stream), {}));
    std::map<std::string, int> depth;
    double last = 0;
    for (const nlohmann::json& event : events) {
      const std::string phase = event.at("ph");
      const int tid = event.value("tid", -1);
      if (phase == "M") {
        if (event.at("name") == "thread_name") rows[tid] = event.at("args").at("name");
        continue;
      }
      if (event.at("ts").get<double>() < last) throw std::runtime_error("time runs backwards");
      last = event.at("ts").get<double>();
      if (phase == "b") buckets.push_back(event);
      if (phase == "i" && tid > 0) marks[rows.at(tid)].insert(event.at("name").get<std::string>());
      if (phase == "B") bars[rows.at(tid)].push_back(event.at("name"));
      if (phase == "B") ++depth[rows.at(tid)];
      if (phase == "E" && --depth[rows.at(tid)] < 0) throw std::runtime_error("an end too much");
    }
    for (const auto& [row, count] : depth) open_bars += count;
  }
};

}  // namespace hv::tests
