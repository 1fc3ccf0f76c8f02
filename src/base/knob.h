// Knobs: environment variables declared once with type, default and one sentence.
// SPDX-License-Identifier: Apache-2.0
//
// A program has one table (knobs.cc). A malformed value is an Error naming variable, value and
// accepted form.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "src/base/environment.h"

namespace hv {

enum class KnobType { kText, kBool, kInteger, kBytes, kSeconds, kChoice };

struct Knob {
  const char* name;  // "HVRUN_FUSION_THRESHOLD"
  KnobType type;
  const char* default_text;  // as a user would write it; "" means unset
  const char* summary;       // one sentence, ends with a full stop
  const char* alias = "";    // "HOROVOD_FUSION_THRESHOLD"; read when name is unset
  const char* choices = "";  // kChoice: "a|b|c"; kText: items of its list, for "did you mean"
  std::int64_t minimum = 0;  // kInteger and kBytes
  std::int64_t maximum = INT64_MAX;
  const char* spellings = "";  // kChoice, other words for a choice: "warning=warn|fatal=error"
  double least_seconds = 0;    // kSeconds
  // kText, kSeconds: checks the value.
  bool (*accepts)(const std::string&) = nullptr;
  // The accepted form, for messages: "a range of ports such as 20000-20099".
  const char* form = "";
  // "HOROVOD_STALL_CHECK_DISABLE": where that says yes and name is unset, the value is 0.
  const char* off_switch = "";
  const char* alias_default = "";  // "DYNAMIC": this value of the alias keeps the default
};

struct KnobValue {
  std::string text;    // value in force
  std::string origin;  // "default", or the variable that set it
};

// Looks knobs up in an environment. The typed getters throw Error(kUsage) for a malformed value.
class KnobReader {
 public:
  KnobReader(const std::vector<Knob>& table, const Environment& environment)
      : table_(table), environment_(environment) {}

  // Throws Error(kUsage) for an off_switch that is neither yes nor no.
  KnobValue value(const char* name) const;
  // A kChoice's value comes in its own spelling, whatever case or other word the user wrote.
  std::string text(const char* name) const;
  bool flag(const char* name) const;
  std::int64_t integer(const char* name) const;  // kInteger, kBytes ("64M", "1GiB")
  double seconds(const char* name) const;        // "60", "0.5", "500ms"
  void check(const Knob& knob) const;            // of the table
  // Parses every knob of the table, so that a malformed one is reported at the start.
  void check_all() const;

 private:
  const Knob& find(const char* name) const;
  const std::vector<Knob>& table_;
  const Environment& environment_;
};

// Warnings about variables without effect: a line for each HVRUN_ variable whose name is similar to
// a knob's, one line for all other HVRUN_ variables that are neither knobs nor in `others`, and a
// line for each HOROVOD_ variable whose name is similar to an alias.
std::vector<std::string> ignored_settings(const std::vector<std::vector<Knob>>& tables,
                                          const std::vector<std::string>& others,
                                          const Environment& environment);

const char* knob_type_name(KnobType type);

}  // namespace hv
