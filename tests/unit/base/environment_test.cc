// Tests of src/base/environment.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/environment.h"

#include <doctest/doctest.h>

#include <cstdlib>

using Entries = std::vector<std::string>;

TEST_CASE("an environment keeps the first of repeated names and drops what is no entry") {
  const auto environment = hv::Environment::from_entries({"A=1", "A=2", "=x", "junk", "", "B="});
  CHECK(environment.get("A") == "1");
  CHECK(environment.get("B") == "");
  CHECK(environment.entries() == Entries{"A=1", "B="});
}

TEST_CASE("a value begins behind the first equals sign and keeps every byte") {
  const std::pair<const char*, const char*> cases[] = {
      {"A=b=c", "b=c"}, {"A==", "="}, {"A= x ", " x "}, {"A=\xff\n\x01", "\xff\n\x01"}, {"A=", ""}};
  for (const auto& [entry, value] : cases) {
    CAPTURE(entry);
    CHECK(hv::Environment::from_entries({entry}).get("A") == value);
  }
}

TEST_CASE("an entry is split at its first equals sign, and needs a name before it") {
  const auto is_split_into = [](std::string_view entry, std::string_view name,
                                std::string_view value) {
    const auto variable = hv::split_variable(entry);
    return variable && variable->first == name && variable->second == value;
  };
  CHECK(is_split_into("A=1", "A", "1"));
  CHECK(is_split_into("A=", "A", ""));
  CHECK(is_split_into("A==b=", "A", "=b="));
  CHECK(is_split_into(std::string_view("A=\0", 3), "A", std::string_view("\0", 1)));
  for (const char* entry : {"", "A", "=", "=A", "=A=b"}) {
    CAPTURE(entry);
    CHECK_FALSE(hv::split_variable(entry).has_value());
  }
}

TEST_CASE("a variable that is set and empty is set") {
  const auto environment = hv::Environment::from_entries({"EMPTY="});
  CHECK(environment.has("EMPTY"));
  CHECK(environment.get_or("EMPTY", "fallback") == "");
  CHECK_FALSE(environment.has("ABSENT"));
  CHECK_FALSE(environment.get("ABSENT").has_value());
  CHECK(environment.get_or("ABSENT", "fallback") == "fallback");
}

TEST_CASE("names are told apart by case and length") {
  const auto environment = hv::Environment::from_entries({"Path=1", "PATH=2", "PATHS=3"});
  CHECK(environment.get("PATH") == "2");
  CHECK(environment.get("Path") == "1");
  CHECK_FALSE(environment.has("PAT"));
  CHECK_FALSE(environment.has(""));
}

TEST_CASE("set replaces, unset removes, and unset of what is absent does nothing") {
  hv::Environment environment;
  environment.set("A", "1");
  environment.set("A", "2");
  CHECK(environment.get("A") == "2");
  environment.unset("B");
  CHECK(environment.all().size() == 1);
  environment.unset("A");
  CHECK_FALSE(environment.has("A"));
  CHECK(environment.entries().empty());
}

TEST_CASE("variables are found by the beginning of their names") {
  const auto environment = hv::Environment::from_entries({"A=0", "A_=1", "A_B=2", "AB=3", "B=4"});
  const auto found = [&](const char* prefix) { return environment.with_prefix(prefix).entries(); };
  CHECK(found("A_") == Entries{"A_=1", "A_B=2"});
  CHECK(found("A") == Entries{"A=0", "AB=3", "A_=1", "A_B=2"});
  CHECK(found("") == environment.entries());
  CHECK(found("A_C") == Entries{});
  CHECK(found("C") == Entries{});
}

TEST_CASE("entries are sorted by name and make the same environment again") {
  const auto environment = hv::Environment::from_entries({"b=2", "A=x=y", "a=", "B=\xfe"});
  const Entries entries = environment.entries();
  CHECK(entries == Entries{"A=x=y", "B=\xfe", "a=", "b=2"});
  CHECK(hv::Environment::from_entries(entries).all() == environment.all());
}

TEST_CASE("of_process is a copy: it holds what was set before and not what is set after") {
  ::setenv("HVRUN_UNIT_BEFORE", "a=b", 1);
  ::unsetenv("HVRUN_UNIT_AFTER");
  const hv::Environment environment = hv::Environment::of_process();
  ::setenv("HVRUN_UNIT_AFTER", "1", 1);
  ::unsetenv("HVRUN_UNIT_BEFORE");
  CHECK(environment.get("HVRUN_UNIT_BEFORE") == "a=b");
  CHECK_FALSE(environment.has("HVRUN_UNIT_AFTER"));
  ::unsetenv("HVRUN_UNIT_AFTER");
}

TEST_CASE("a change to a copy leaves the original as it was") {
  const auto original = hv::Environment::from_entries({"A=1"});
  hv::Environment copy = original;
  copy.set("A", "2");
  copy.set("B", "3");
  CHECK(original.entries() == Entries{"A=1"});
}
