// Tests of src/contract/runtime_knobs.
// SPDX-License-Identifier: Apache-2.0
#include "src/contract/runtime_knobs.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "src/base/error.h"
#include "src/base/log.h"
#include "src/base/text.h"
#include "src/contract/contract.h"

namespace {

hv::Environment with(const std::string& name, const std::string& value) {
  hv::Environment environment;
  environment.set(name, value);
  return environment;
}

bool is_refused(const hv::Environment& environment) {
  try {
    hv::KnobReader(hv::runtime_knobs(), environment).check_all();
  } catch (const hv::Error&) {
    return true;
  }
  return false;
}

}  // namespace

TEST_CASE("the runtime's defaults are well-formed and as documented") {
  const hv::Environment empty;
  const hv::KnobReader knobs(hv::runtime_knobs(), empty);
  CHECK_NOTHROW(knobs.check_all());
  CHECK(knobs.text("HVRUN_LOG_LEVEL") == "warn");
  CHECK(knobs.integer("HVRUN_FUSION_THRESHOLD") == 64 << 20);
  CHECK(knobs.integer("HVRUN_CACHE_CAPACITY") == 4096);
  CHECK(knobs.seconds("HVRUN_STALL_SECONDS") == 60);
  CHECK_FALSE(knobs.flag("HVRUN_DETERMINISTIC"));
  CHECK(knobs.text("HVRUN_BACKEND").empty());
  CHECK(knobs.text("HVRUN_ALGORITHM").empty());
  CHECK(knobs.text("HVRUN_KERNELS").empty());
  CHECK(knobs.text("HVRUN_PORT_RANGE").empty());
  CHECK(knobs.text("HVRUN_INTERFACES").empty());
  CHECK(knobs.integer("HVRUN_STREAMS") == 1);
  CHECK(knobs.seconds("HVRUN_PEER_TIMEOUT") == 15);
}

TEST_CASE("each runtime knob has one name of ours, at most one other, and one sentence") {
  std::set<std::string> names;
  for (const hv::Knob& knob : hv::runtime_knobs()) {
    const std::string name = knob.name, alias = knob.alias, summary = knob.summary;
    CAPTURE(name);
    CHECK(name.rfind("HVRUN_", 0) == 0);
    CHECK(names.insert(name).second);
    if (!alias.empty()) {
      CHECK((alias.rfind("HOROVOD_", 0) == 0 || alias == hv::kJobLostAfter));  // --lost-after's
      CHECK(names.insert(alias).second);
    }
    CHECK(summary.back() == '.');
    const bool has_words = knob.type == hv::KnobType::kChoice || name == "HVRUN_BACKEND";
    CHECK(std::string(knob.choices).empty() != has_words);
  }
}

TEST_CASE("every log level that a user can write is one that the log knows") {
  const auto& table = hv::runtime_knobs();
  const auto knob = std::find_if(table.begin(), table.end(), [](const hv::Knob& each) {
    return each.name == std::string("HVRUN_LOG_LEVEL");
  });
  REQUIRE(knob != table.end());
  std::vector<std::string> words = hv::split(knob->choices, '|');
  for (const std::string& spelling : hv::split(knob->spellings, '|'))
    words.push_back(spelling.substr(0, spelling.find('=')));
  CHECK(words.size() == 7);
  for (const std::string& word : words) {
    CAPTURE(word);
    const hv::Environment environment = with("HVRUN_LOG_LEVEL", word);
    hv::LogLevel level{};
    CHECK(hv::parse_log_level(hv::KnobReader(table, environment).text("HVRUN_LOG_LEVEL"), &level));
  }
}

TEST_CASE("Horovod's names are read, and ours go before them") {
  hv::Environment environment = with("HOROVOD_FUSION_THRESHOLD", "33554432");
  environment.set("HOROVOD_STALL_CHECK_TIME_SECONDS", "5");
  environment.set("HOROVOD_LOG_LEVEL", "WARNING");
  environment.set("HOROVOD_CACHE_CAPACITY", "0");
  const hv::KnobReader knobs(hv::runtime_knobs(), environment);
  CHECK(knobs.integer("HVRUN_FUSION_THRESHOLD") == 32 << 20);
  CHECK(knobs.seconds("HVRUN_STALL_SECONDS") == 5);
  CHECK(knobs.text("HVRUN_LOG_LEVEL") == "warn");
  CHECK(knobs.integer("HVRUN_CACHE_CAPACITY") == 0);
  environment.set("HOROVOD_STALL_CHECK_DISABLE", "1");
  CHECK(knobs.seconds("HVRUN_STALL_SECONDS") == 0);
  environment.set("HVRUN_FUSION_THRESHOLD", "1K");
  CHECK(knobs.integer("HVRUN_FUSION_THRESHOLD") == 1024);
}

TEST_CASE("each of Horovod's common variables leads to what it says") {
  struct Row {
    const char *variable, *value, *knob, *means;
  };
  const Row rows[] = {
      {"HOROVOD_FUSION_THRESHOLD", "33554432", "HVRUN_FUSION_THRESHOLD", "33554432"},
      {"HOROVOD_CACHE_CAPACITY", "17", "HVRUN_CACHE_CAPACITY", "17"},
      {"HOROVOD_TIMELINE", "/tmp/t.json", "HVRUN_TIMELINE", "/tmp/t.json"},
      {"HOROVOD_STALL_CHECK_TIME_SECONDS", "5", "HVRUN_STALL_SECONDS", "5"},
      {"HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "7", "HVRUN_STALL_SHUTDOWN_SECONDS", "7"},
      {"HOROVOD_LOG_LEVEL", "DEBUG", "HVRUN_LOG_LEVEL", "debug"}};
  for (const Row& row : rows) {
    CAPTURE(row.variable);
    const hv::Environment environment = with(row.variable, row.value);
    const hv::KnobReader knobs(hv::runtime_knobs(), environment);
    CHECK_NOTHROW(knobs.check_all());
    CHECK(knobs.text(row.knob) == row.means);
    CHECK(knobs.value(row.knob).origin == row.variable);
  }
  const hv::Environment environment = with("HOROVOD_STALL_SHUTDOWN_TIME_SECONDS", "7");
  CHECK(hv::KnobReader(hv::runtime_knobs(), environment).seconds("HVRUN_STALL_SHUTDOWN_SECONDS") ==
        7);
}

TEST_CASE("a stall ends the job after half an hour, unless it is told never to") {
  const auto seconds = [](const hv::Environment& environment) {
    return hv::KnobReader(hv::runtime_knobs(), environment).seconds("HVRUN_STALL_SHUTDOWN_SECONDS");
  };
  CHECK(seconds({}) == 1800);
  CHECK(seconds(with("HVRUN_STALL_SHUTDOWN_SECONDS", "0")) == 0);
  CHECK(seconds(with("HOROVOD_STALL_CHECK_DISABLE", "1")) == 0);
}

TEST_CASE("Horovod's word for a timeline that the program will start is no file's name") {
  const hv::Environment environment = with("HOROVOD_TIMELINE", "DYNAMIC");
  const hv::KnobReader knobs(hv::runtime_knobs(), environment);
  CHECK(knobs.text("HVRUN_TIMELINE").empty());
  CHECK(knobs.value("HVRUN_TIMELINE").origin == "default");
}

TEST_CASE("the runtime's limits hold at their edges") {
  const std::pair<const char*, const char*> good[] = {{"HVRUN_CACHE_CAPACITY", "0"},
                                                      {"HVRUN_CACHE_CAPACITY", "1048576"},
                                                      {"HVRUN_STALL_SECONDS", "0"},
                                                      {"HVRUN_FUSION_THRESHOLD", "0"},
                                                      {"HVRUN_BACKEND", "native"},
                                                      {"HVRUN_DETERMINISTIC", "true"},
                                                      {"HVRUN_BACKEND", "mpi, native"},
                                                      {"HVRUN_PORT_RANGE", "1-65535"},
                                                      {"HVRUN_STREAMS", "16"},
                                                      {"HVRUN_PEER_TIMEOUT", "0"},
                                                      {"HVRUN_PEER_TIMEOUT", "500ms"},
                                                      {hv::kJobLostAfter, "0.5"},
                                                      {hv::kJobLostAfter, "1080000.000"},
                                                      {"HVRUN_KERNELS", "avx2"},
                                                      {"HVRUN_INTERFACES", "^docker0,10.0.0.0/8"}};
  for (const auto& [name, value] : good) CHECK_FALSE(is_refused(with(name, value)));
  const std::pair<const char*, const char*> bad[] = {{"HVRUN_CACHE_CAPACITY", "-1"},
                                                     {"HVRUN_CACHE_CAPACITY", "1048577"},
                                                     {"HVRUN_STALL_SECONDS", "-1"},
                                                     {"HVRUN_FUSION_THRESHOLD", "-1"},
                                                     {"HVRUN_BACKEND", "nccl2"},
                                                     {"HVRUN_BACKEND", "mpi,, native"},
                                                     {"HVRUN_BACKEND", "NCCL"},
                                                     {"HVRUN_BACKEND", " "},
                                                     {"HVRUN_DETERMINISTIC", "2"},
                                                     {"HVRUN_LOG_LEVEL", "loud"},
                                                     {"HVRUN_KERNELS", "mmx"},
                                                     {"HVRUN_PORT_RANGE", "2-1"},
                                                     {"HVRUN_INTERFACES", "10.0.0.0/33"},
                                                     {"HVRUN_STREAMS", "0"},
                                                     {"HVRUN_STREAMS", "17"},
                                                     {"HVRUN_PEER_TIMEOUT", "0.4"},
                                                     {"HVRUN_PEER_TIMEOUT", "-1"},
                                                     {"HVRUN_PEER_TIMEOUT", "2000000000"}};
  for (const auto& [name, value] : bad) {
    CAPTURE(name);
    CHECK(is_refused(with(name, value)));
  }
}
