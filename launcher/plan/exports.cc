// SPDX-License-Identifier: Apache-2.0
#include "launcher/plan/exports.h"

#include <utility>

#include "src/base/error.h"
#include "src/base/text.h"
#include "src/contract/contract.h"

namespace hv::launcher {
namespace {

void check_export_name(const std::string& text, const std::string& name) {
  if (name.empty() || name[0] == '=' || name.find('\0') != std::string::npos) {
    throw Error(ErrorKind::kUsage, "-x '" + printable(text) + "' names no variable",
                "expected NAME, NAME=VALUE or 'PREFIX_*'");
  }
  if (is_contract_name(name)) {
    throw Error(ErrorKind::kUsage,
                "-x " + printable(name) + ": hvrun itself sets this variable for each rank",
                name == kMasterPort ? "use --master-port" : "leave it out");
  }
}

Environment matching_variables(const std::string& pattern, const Environment& own) {
  Environment matches = own.with_prefix(std::string_view(pattern).substr(0, pattern.size() - 1));
  for (const std::string& name : contract_names()) matches.unset(name);
  return matches;
}

}  // namespace

void Exports::add(const std::string& text) {
  if (const auto variable = split_variable(text)) {
    std::string name(variable->first);
    check_export_name(text, name);
    return add_value(std::move(name), std::string(variable->second));
  }
  check_export_name(text, text);
  list_.push_back({text.back() == '*' ? Export::Form::kPattern : Export::Form::kName, text});
}

void Exports::add_value(std::string name, std::string value) {
  list_.push_back({Export::Form::kValue, std::move(name), std::move(value)});
}

void Exports::add_all(const Exports& later) {
  list_.insert(list_.end(), later.list_.begin(), later.list_.end());
}

RankEnvironment Exports::resolve(const Environment& own) const {
  RankEnvironment result;
  for (const auto& [form, name, value] : list_) {
    switch (form) {
      case Export::Form::kValue:
        result.set(name, value);
        break;
      case Export::Form::kName: {
        const auto here = own.get(name);
        if (!here)
          throw Error(ErrorKind::kUsage,
                      "-x " + printable(name) + ": this variable is not set here",
                      "set it, or write -x " + printable(name) + "=VALUE");
        result.set(name, *here);
        break;
      }
      case Export::Form::kPattern: {
        const Environment matches = matching_variables(name, own);
        for (const auto& [match, here] : matches.all()) result.set(match, here);
        break;
      }
    }
  }
  return result;
}

std::vector<std::string> Exports::unmatched_patterns(const Environment& own) const {
  std::vector<std::string> unmatched;
  for (const auto& [form, name, value] : list_)
    if (form == Export::Form::kPattern && matching_variables(name, own).all().empty())
      unmatched.push_back(name);
  return unmatched;
}

Exports parse_exports(const std::vector<std::string>& texts) {
  Exports exports;
  for (const std::string& text : texts) exports.add(text);
  return exports;
}

}  // namespace hv::launcher
