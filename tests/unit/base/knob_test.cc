// Tests of src/base/knob.
// SPDX-License-Identifier: Apache-2.0
#include "src/base/knob.h"

#include <doctest/doctest.h>

#include <csignal>

#include "src/base/error.h"
#include "tests/unit/base/dying.h"

namespace {

const std::vector<hv::Knob> kTable{
    {"HVRUN_BUFFER", hv::KnobType::kBytes, "64M", "Bytes.", "HOROVOD_BUFFER"},
    {"HVRUN_COUNT", hv::KnobType::kInteger, "3", "Count.", "", "", 1, 10},
    {"HVRUN_FLAG", hv::KnobType::kBool, "0", "Flag."},
    {"HVRUN_WAIT", hv::KnobType::kSeconds, "60", "Wait."},
    {"HVRUN_PAUSE", hv::KnobType::kSeconds, "2", "Pause.", "", "", 0, 0, "", 0.5},
    {"HVRUN_WATCH", hv::KnobType::kSeconds, "60", "Watch.", "HOROVOD_WATCH", "", 0, INT64_MAX, "",
     0, nullptr, "", "HOROVOD_NO_WATCH"},
    {"HVRUN_KIND", hv::KnobType::kChoice, "", "Kind.", "", "a|b", 0, INT64_MAX, "first=a|second=b"},
};

hv::Environment with(const std::string& entry) { return hv::Environment::from_entries({entry}); }

// What and hint of the error that checking the table meets under this entry; empty when there is
// none.
std::pair<std::string, std::string> complaint(const std::string& entry) {
  const auto environment = with(entry);
  try {
    hv::KnobReader(kTable, environment).check_all();
  } catch (const hv::Error& error) {
    CHECK(error.kind() == hv::ErrorKind::kUsage);
    return {error.what(), error.hint()};
  }
  return {};
}

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

TEST_CASE("a switch-off goes before the alias and behind the knob's own name") {
  const auto watch = [](const std::vector<std::string>& entries) {
    const auto environment = hv::Environment::from_entries(entries);
    const hv::KnobReader knobs(kTable, environment);
    return std::to_string(static_cast<int>(knobs.seconds("HVRUN_WATCH"))) + " by " +
           knobs.value("HVRUN_WATCH").origin;
  };
  CHECK(watch({"HOROVOD_NO_WATCH=1", "HOROVOD_WATCH=5"}) == "0 by HOROVOD_NO_WATCH");
  CHECK(watch({"HOROVOD_NO_WATCH=0", "HOROVOD_WATCH=5"}) == "5 by HOROVOD_WATCH");
  CHECK(watch({"HOROVOD_NO_WATCH=1", "HVRUN_WATCH=7"}) == "7 by HVRUN_WATCH");
  CHECK(watch({"HOROVOD_NO_WATCH=", "HVRUN_WATCH="}) == "60 by default");
  CHECK(complaint("HOROVOD_NO_WATCH=perhaps").first == "HOROVOD_NO_WATCH is 'perhaps': not 0 or 1");
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

TEST_CASE("a choice is known in any case and by its other spellings, and comes in its own") {
  const std::pair<const char*, const char*> cases[] = {
      {"a", "a"}, {"B", "b"}, {"first", "a"}, {"SECOND", "b"}};
  for (const auto& [written, meant] : cases) {
    CAPTURE(written);
    const auto environment = with(std::string("HVRUN_KIND=") + written);
    CHECK(hv::KnobReader(kTable, environment).text("HVRUN_KIND") == meant);
  }
  for (const char* wrong : {"fir", "a|b", "first=a", "ab"}) {
    CAPTURE(wrong);
    const auto environment = with(std::string("HVRUN_KIND=") + wrong);
    CHECK_THROWS_AS(hv::KnobReader(kTable, environment).text("HVRUN_KIND"), hv::Error);
  }
}

TEST_CASE(
    "a word that is nearly one of a knob's is told as that, if it has more than two letters") {
  CHECK(complaint("HVRUN_KIND=frist").second.rfind("did you mean first? set it to", 0) == 0);
  for (const char* far : {"c", "ab", "neither"}) {
    CAPTURE(far);
    CHECK(complaint(std::string("HVRUN_KIND=") + far).second.rfind("set it to", 0) == 0);
  }
}

TEST_CASE("a flag is true or false by any of its words, in any case") {
  const std::pair<const char*, bool> cases[] = {{"1", true},   {"true", true}, {"YES", true},
                                                {"On", true},  {"0", false},   {"False", false},
                                                {"no", false}, {"OFF", false}};
  for (const auto& [written, meant] : cases) {
    CAPTURE(written);
    const auto environment = with(std::string("HVRUN_FLAG=") + written);
    CHECK(hv::KnobReader(kTable, environment).flag("HVRUN_FLAG") == meant);
  }
  for (const char* wrong : {"2", "01", "y", " 1", "-1", "truely"}) {
    CAPTURE(wrong);
    CHECK_FALSE(complaint(std::string("HVRUN_FLAG=") + wrong).first.empty());
  }
}

TEST_CASE("a number's limits belong to it") {
  for (const auto& [written, meant] : {std::pair("1", 1), std::pair("10", 10)}) {
    const auto environment = with(std::string("HVRUN_COUNT=") + written);
    CHECK(hv::KnobReader(kTable, environment).integer("HVRUN_COUNT") == meant);
  }
  for (const char* beyond : {"0", "11", "-1", "9223372036854775808"}) {
    CAPTURE(beyond);
    CHECK_FALSE(complaint(std::string("HVRUN_COUNT=") + beyond).first.empty());
  }
}

TEST_CASE("a time is read with its unit") {
  for (const auto& [written, meant_s] : {std::pair("2", 2.0), std::pair("250ms", 0.25),
                                         std::pair("2m", 120.0), std::pair("0", 0.0)}) {
    CAPTURE(written);
    const auto environment = with(std::string("HVRUN_WAIT=") + written);
    CHECK(hv::KnobReader(kTable, environment).seconds("HVRUN_WAIT") == meant_s);
  }
}

TEST_CASE("a time's least value belongs to it") {
  for (const char* written : {"0.5", "500ms", "1h"}) {
    CAPTURE(written);
    CHECK(complaint(std::string("HVRUN_PAUSE=") + written).first.empty());
  }
  for (const char* beyond : {"0", "0.1", "499ms", "-1"}) {
    CAPTURE(beyond);
    CHECK(complaint(std::string("HVRUN_PAUSE=") + beyond).first ==
          std::string("HVRUN_PAUSE is '") + beyond +
              "': not a time such as 60, 0.5s or 500ms of at least 0.5 s");
  }
}

TEST_CASE("a variable set to nothing counts as unset, also before its alias") {
  const auto emptied = hv::Environment::from_entries({"HVRUN_BUFFER=", "HOROVOD_BUFFER=1M"});
  CHECK(hv::KnobReader(kTable, emptied).value("HVRUN_BUFFER").origin == "HOROVOD_BUFFER");
  const auto both = hv::Environment::from_entries({"HVRUN_BUFFER=", "HOROVOD_BUFFER="});
  CHECK(hv::KnobReader(kTable, both).value("HVRUN_BUFFER").origin == "default");
  CHECK(hv::KnobReader(kTable, both).value("HVRUN_BUFFER").text == "64M");
}

TEST_CASE("a knob without alias does not read the variable of no name") {
  hv::Environment environment;
  environment.set("", "1");
  CHECK(hv::KnobReader(kTable, environment).value("HVRUN_FLAG").origin == "default");
}

TEST_CASE("each type's error says what it accepts and what holds without the variable") {
  struct {
    const char* entry;
    const char* what;
    const char* hint;
  } const cases[] = {
      {"HVRUN_BUFFER=-1", "HVRUN_BUFFER is '-1': not a number of bytes such as 65536, 64K or 1G",
       "set it to a number of bytes such as 65536, 64K or 1G, or unset it (default: 64M)"},
      {"HVRUN_FLAG=maybe", "HVRUN_FLAG is 'maybe': not 0 or 1",
       "set it to 0 or 1, or unset it (default: 0)"},
      {"HVRUN_WAIT=soon", "HVRUN_WAIT is 'soon': not a time such as 60, 0.5s or 500ms",
       "set it to a time such as 60, 0.5s or 500ms, or unset it (default: 60)"},
      {"HVRUN_KIND=c", "HVRUN_KIND is 'c': not one of a, b",
       "set it to one of a, b, or unset it (default: unset)"},
      {"HVRUN_COUNT=\x1b[2J", "HVRUN_COUNT is '\\x1b[2J': not a whole number from 1 to 10",
       "set it to a whole number from 1 to 10, or unset it (default: 3)"},
  };
  for (const auto& [entry, what, hint] : cases) {
    const auto [said, hinted] = complaint(entry);
    CHECK(said == what);
    CHECK(hinted == hint);
  }
}

TEST_CASE(
    "a setting without effect is reported: with the name that it looks like, the rest in one "
    "line") {
  const std::vector<hv::Knob> table{
      {"HVRUN_STALL_SECONDS", hv::KnobType::kSeconds, "60", "How long.", "HOROVOD_STALL_TIME", "",
       0, INT64_MAX, "", 0, nullptr, "", "HOROVOD_STALL_DISABLE"},
      {"HVRUN_RSH", hv::KnobType::kText, "", "By what."}};
  const auto lines_for = [&](const std::vector<std::string>& entries) {
    return hv::ignored_settings({table}, {"HVRUN_RANK", "HVRUN_SIZE", "HOROVOD_STALL_TIMER"},
                                hv::Environment::from_entries(entries));
  };
  using Lines = std::vector<std::string>;
  CHECK(lines_for({"HVRUN_STAL_SECONDS=5"}) ==
        Lines{"HVRUN_STAL_SECONDS sets nothing; did you mean HVRUN_STALL_SECONDS?"});
  CHECK(lines_for({"HOROVOD_STALL_DISABEL=5"}) ==
        Lines{"HOROVOD_STALL_DISABEL sets nothing; did you mean HOROVOD_STALL_DISABLE?"});
  CHECK(lines_for({"HVRUN_VERBOSE=1"}) ==
        Lines{"HVRUN_VERBOSE sets nothing; 'hvrun env' lists what does"});
  CHECK(lines_for({"HVRUN_NP=4", "HVRUN_VERBOSE=1"}) ==
        Lines{"HVRUN_NP, HVRUN_VERBOSE set nothing; 'hvrun env' lists what does"});
  CHECK(lines_for({"HVRUN_STALL_SECONDS=5", "HVRUN_RSH=ssh", "HVRUN_RANK=0", "HVRUN_SIZE=1",
                   "HOROVOD_STALL_TIME=1", "HOROVOD_STALL_TIMER=1", "HOROVOD_ELASTIC=1",
                   "OTHER_STAL_SECONDS=5"})
            .empty());
}

TEST_CASE("a malformed alias is told by the name the user wrote") {
  CHECK(complaint("HOROVOD_BUFFER=much").first.rfind("HOROVOD_BUFFER is 'much'", 0) == 0);
}

TEST_CASE("a malformed default is found, an absent one is none") {
  const hv::Environment empty;
  const std::vector<hv::Knob> broken{{"HVRUN_X", hv::KnobType::kInteger, "x", "X."}};
  CHECK_THROWS_AS(hv::KnobReader(broken, empty).check_all(), hv::Error);
  for (const hv::KnobType type :
       {hv::KnobType::kText, hv::KnobType::kBool, hv::KnobType::kInteger, hv::KnobType::kBytes,
        hv::KnobType::kSeconds, hv::KnobType::kChoice}) {
    const std::vector<hv::Knob> unset{{"HVRUN_X", type, "", "X."}};
    CHECK_NOTHROW(hv::KnobReader(unset, empty).check_all());
  }
}

TEST_CASE("a text is taken as it is") {
  const std::vector<hv::Knob> table{{"HVRUN_NAME", hv::KnobType::kText, "", "Name."}};
  const auto environment = with("HVRUN_NAME= A|b=\xff ");
  CHECK(hv::KnobReader(table, environment).text("HVRUN_NAME") == " A|b=\xff ");
  const hv::Environment empty;
  CHECK(hv::KnobReader(table, empty).text("HVRUN_NAME").empty());
}

TEST_CASE("a knob that no table declares is a broken invariant") {
  const hv::Death death = hv::death_of([] {
    const hv::Environment empty;
    (void)hv::KnobReader(kTable, empty).value("HVRUN_UNDECLARED");
  });
  CHECK(death.signal == SIGABRT);
  CHECK(death.last_words.find("HVRUN_UNDECLARED") != std::string::npos);
}

TEST_CASE("each type has a word for the listing of knobs") {
  const std::pair<hv::KnobType, const char*> cases[] = {
      {hv::KnobType::kText, "text"},       {hv::KnobType::kBool, "0|1"},
      {hv::KnobType::kInteger, "number"},  {hv::KnobType::kBytes, "bytes"},
      {hv::KnobType::kSeconds, "seconds"}, {hv::KnobType::kChoice, "choice"}};
  for (const auto& [type, word] : cases) CHECK(std::string(hv::knob_type_name(type)) == word);
}
