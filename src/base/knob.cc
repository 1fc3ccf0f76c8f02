// SPDX-License-Identifier: Apache-2.0
#include "src/base/knob.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>

#include "src/base/check.h"
#include "src/base/clock.h"
#include "src/base/error.h"
#include "src/base/text.h"

namespace hv {
namespace {

// "did you mean nccl? "; "" where nothing is similar. All words of two letters are equally near.
std::string meant_by(const Knob& knob, const std::string& written) {
  constexpr std::size_t kShort = 2;
  std::vector<std::string> known = split(knob.choices, '|');
  for (const std::string& spelling : split(knob.spellings, '|'))
    known.push_back(spelling.substr(0, spelling.find('=')));
  for (const std::string_view one : split(written, ',')) {
    const std::string_view word = trim(one);
    const auto guess = word.size() > kShort ? nearest(lower(word), known) : std::nullopt;
    if (guess && *guess != word) return "did you mean " + *guess + "? ";
  }
  return "";
}

[[noreturn]] void malformed(const Knob& knob, const KnobValue& value, const std::string& accepted) {
  throw Error(
      ErrorKind::kUsage, value.origin + " is '" + printable(value.text) + "': not " + accepted,
      meant_by(knob, value.text) + "set it to " + accepted +
          ", or unset it (default: " + (*knob.default_text ? knob.default_text : "unset") + ")");
}

std::string least_text(const Knob& knob) {
  if (knob.least_seconds <= 0) return "";
  return " of at least " + format_duration(Seconds(knob.least_seconds));
}

std::string accepted_form(const Knob& knob) {
  switch (knob.type) {
    case KnobType::kText:
      return *knob.form ? knob.form : "a text";
    case KnobType::kBool:
      return "0 or 1";
    case KnobType::kSeconds:
      if (*knob.form) return knob.form;
      return "a time such as 60, 0.5s or 500ms" + least_text(knob);
    case KnobType::kChoice:
      if (*knob.form) return knob.form;
      return (std::strchr(knob.choices, '|') ? "one of " : "") +
             join(split(knob.choices, '|'), ", ");
    case KnobType::kInteger:
    case KnobType::kBytes:
      break;
  }
  const std::string unit = knob.type == KnobType::kBytes
                               ? "a number of bytes such as 65536, 64K or 1G"
                               : "a whole number";
  if (knob.maximum == INT64_MAX && knob.minimum == 0) return unit;
  if (knob.maximum == INT64_MAX) return unit + " of at least " + std::to_string(knob.minimum);
  return unit + " from " + std::to_string(knob.minimum) + " to " + std::to_string(knob.maximum);
}

// nullopt: neither yes nor no.
std::optional<bool> parse_flag(const std::string& written) {
  const std::string text = lower(written);
  if (text == "1" || text == "true" || text == "yes" || text == "on") return true;
  if (text == "0" || text == "false" || text == "no" || text == "off" || text.empty()) return false;
  return std::nullopt;
}

// The choice that the user's word stands for.
std::optional<std::string> choice_of(const Knob& knob, const std::string& written) {
  const std::string word = lower(written);
  for (const std::string& choice : split(knob.choices, '|'))
    if (choice == word) return choice;
  for (const std::string& spelling : split(knob.spellings, '|'))
    if (spelling.rfind(word + "=", 0) == 0) return spelling.substr(word.size() + 1);
  return std::nullopt;
}

std::vector<std::string> names_of(const std::vector<std::vector<Knob>>& tables) {
  std::vector<std::string> names;
  for (const std::vector<Knob>& table : tables)
    for (const Knob& knob : table)
      for (const char* name : {knob.name, knob.alias, knob.off_switch}) names.push_back(name);
  return names;
}

}  // namespace

const Knob& KnobReader::find(const char* name) const {
  for (const Knob& knob : table_) {
    if (std::strcmp(knob.name, name) == 0) return knob;
  }
  check_failed(__FILE__, __LINE__, "knob is declared", name);
}

KnobValue KnobReader::value(const char* name) const {
  const Knob& knob = find(name);
  const auto set = [this](const char* variable) {
    return *variable ? environment_.get_or(variable, "") : std::string();
  };
  if (const std::string own = set(knob.name); !own.empty()) return {own, knob.name};
  if (const std::string off = set(knob.off_switch); !off.empty()) {
    const auto is_off = parse_flag(off);
    if (!is_off) malformed(knob, {off, knob.off_switch}, "0 or 1");
    if (*is_off) return {"0", knob.off_switch};
  }
  if (const std::string other = set(knob.alias); !other.empty() && other != knob.alias_default)
    return {other, knob.alias};
  return {knob.default_text, "default"};
}

std::string KnobReader::text(const char* name) const {
  const Knob& knob = find(name);
  const KnobValue found = value(name);
  if (found.text.empty()) return found.text;
  if (knob.accepts && !knob.accepts(found.text)) malformed(knob, found, accepted_form(knob));
  if (knob.type != KnobType::kChoice) return found.text;
  const auto choice = choice_of(knob, found.text);
  if (!choice) malformed(knob, found, accepted_form(knob));
  return *choice;
}

bool KnobReader::flag(const char* name) const {
  const Knob& knob = find(name);
  const KnobValue found = value(name);
  if (const auto parsed = parse_flag(found.text)) return *parsed;
  malformed(knob, found, accepted_form(knob));
}

std::int64_t KnobReader::integer(const char* name) const {
  const Knob& knob = find(name);
  const KnobValue found = value(name);
  const auto parsed =
      knob.type == KnobType::kBytes ? parse_bytes(found.text) : parse_integer(found.text);
  if (!parsed || *parsed < knob.minimum || *parsed > knob.maximum)
    malformed(knob, found, accepted_form(knob));
  return *parsed;
}

double KnobReader::seconds(const char* name) const {
  const Knob& knob = find(name);
  const KnobValue found = value(name);
  const auto parsed = parse_seconds(found.text);
  const bool is_accepted = !knob.accepts || knob.accepts(found.text);
  if (!parsed || *parsed < knob.least_seconds || !is_accepted)
    malformed(knob, found, accepted_form(knob));
  return *parsed;
}

void KnobReader::check(const Knob& knob) const {
  if (!*knob.default_text && value(knob.name).text.empty()) return;
  switch (knob.type) {
    case KnobType::kText:
    case KnobType::kChoice:
      text(knob.name);
      break;
    case KnobType::kBool:
      flag(knob.name);
      break;
    case KnobType::kInteger:
    case KnobType::kBytes:
      integer(knob.name);
      break;
    case KnobType::kSeconds:
      seconds(knob.name);
      break;
  }
}

void KnobReader::check_all() const {
  for (const Knob& knob : table_) check(knob);
}

std::vector<std::string> ignored_settings(const std::vector<std::vector<Knob>>& tables,
                                          const std::vector<std::string>& others,
                                          const Environment& environment) {
  const std::set<std::string> known(others.begin(), others.end());
  std::vector<std::string> lines, unlike;
  for (const std::string_view prefix : {"HVRUN_", "HOROVOD_"}) {
    // Names are compared without the prefix, which all have in common.
    std::vector<std::string> names;
    for (const std::string& name : names_of(tables))
      if (name.rfind(prefix, 0) == 0) names.push_back(name.substr(prefix.size()));
    for (const auto& [variable, value] : environment.all()) {
      if (variable.rfind(prefix, 0) != 0) continue;
      if (known.count(variable) > 0) continue;
      const std::string name = variable.substr(prefix.size());
      const auto guess = nearest(name, names);
      if (guess && *guess == name) continue;
      if (guess) {
        lines.push_back(printable(variable) + " sets nothing; did you mean " + std::string(prefix) +
                        *guess + "?");
      } else if (prefix == "HVRUN_") {
        unlike.push_back(printable(variable));
      }
    }
  }
  if (!unlike.empty()) {
    lines.push_back(join(unlike, ", ") + word_for(unlike.size(), " sets", " set") +
                    " nothing; 'hvrun env' lists what does");
  }
  return lines;
}

const char* knob_type_name(KnobType type) {
  switch (type) {
    case KnobType::kText:
      return "text";
    case KnobType::kBool:
      return "0|1";
    case KnobType::kInteger:
      return "number";
    case KnobType::kBytes:
      return "bytes";
    case KnobType::kSeconds:
      return "seconds";
    case KnobType::kChoice:
      return "choice";
  }
  return "";
}

}  // namespace hv
