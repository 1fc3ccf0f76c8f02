// Tests of src/base/knob and environment. SPDX-License-Identifier: Apache-2.0
#include "src/base/knob.h"

#include <doctest/doctest.h>

#include "src/base/error.h"

namespace {

const std::vector<hv::Knob> kTable{
    {"HVRUN_BUFFER", hv::KnobType::kBytes, "64M", "Bytes.", "HOROVOD_BUFFER"},
    {"HVRUN_COUNT", hv::KnobType::kInteger, "3", "Count.", "", "", 1, 10},
    {"HVRUN_FLAG", hv::KnobType::kBool, "0", "Flag."},
    {"HVRUN_WAIT", hv::KnobType::kSeconds, "60", "Wait."},
    {"HVRUN_KIND", hv::KnobType::kChoice, "", "Kind.", "", "a|b"},
};

hv::Environment with(const std::string& entry) { return hv::Environment::from_entries({entry}); }

}  // namespace

TEST_CASE("a knob's value comes from its name, then its alias, then its default") {
  const auto both = hv::Environment::from_entries({"HOROVOD_BUFFER=1M", "HVRUN_BUFFER=2M"});
  CHECK(hv::KnobReader(kTable, both).integer("HVRUN_BUFFER") == 2 << 20);
  CHECK(hv::KnobReader(kTable, both).value("HVRUN_BUFFER").origin == "HVRUN_BUFFER");
  const auto alias = with("HOROVOD_BUFFER=1M");
  CHECK(hv::KnobReader(kTable, alias).integer("HVRUN_BUFFER") == 1 << 20);
  CHECK(hv::KnobReader(kTable, alias).value("HVRUN_BUFFER").origin == "HOROVOD_BUFFER");
  const hv::Environment empty;
  CHECK(hv::KnobReader(kTable, empty).integer("HVRUN_BUFFER") == 64 << 20);
  CHECK(hv::KnobReader(kTable, empty).value("HVRUN_BUFFER").origin == "default");
}

TEST_CASE("a malformed knob is an error that names variable, value and accepted form") {
  for (const char* entry : {"HVRUN_BUFFER=lots", "HVRUN_COUNT=11", "HVRUN_COUNT=x",
                            "HVRUN_FLAG=maybe", "HVRUN_WAIT=soon", "HVRUN_KIND=c"}) {
    CAPTURE(entry);
    const auto environment = with(entry);
    CHECK_THROWS_AS(hv::KnobReader(kTable, environment).check_all(), hv::Error);
  }
  const auto environment = with("HVRUN_COUNT=11");
  try {
    hv::KnobReader(kTable, environment).check_all();
  } catch (const hv::Error& error) {
    CHECK(std::string(error.what()) == "HVRUN_COUNT is '11': not a whole number from 1 to 10");
    CHECK(error.kind() == hv::ErrorKind::kUsage);
  }
}

TEST_CASE("defaults are well-formed") {
  const hv::Environment empty;
  CHECK_NOTHROW(hv::KnobReader(kTable, empty).check_all());
}

TEST_CASE("an environment keeps the first of repeated names and drops what is no entry") {
  const auto environment = hv::Environment::from_entries({"A=1", "A=2", "=x", "junk", "B="});
  CHECK(environment.get("A") == "1");
  CHECK(environment.get("B") == "");
  CHECK(environment.entries() == std::vector<std::string>{"A=1", "B="});
}
