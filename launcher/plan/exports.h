// Exports: the variables that the user gives to ranks by -x, parsed once, when the command line is
// read. Values, no I/O.
// SPDX-License-Identifier: Apache-2.0
//
// The later of two exports of one name counts. horovodrun's options are exports, too.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "src/base/environment.h"
#include "src/contract/rank_environment.h"

namespace hv::launcher {

struct Export {
  enum class Form {
    kValue,    // NAME=VALUE
    kName,     // NAME: the value in hvrun's environment
    kPattern,  // PREFIX_*: the variables of hvrun's environment that begin with PREFIX_, except the
               // contract's
  };
  Form form = Form::kValue;
  std::string name;     // kPattern: the prefix and '*'
  std::string value{};  // kValue only
  bool operator==(const Export&) const = default;
};

class Exports {
 public:
  // text: the argument of one -x. Throws Error(kUsage) for one without a name, and for a name of
  // the contract.
  void add(const std::string& text);
  void add_value(std::string name, std::string value);
  void add_all(const Exports& later);

  const std::vector<Export>& list() const { return list_; }
  // own: hvrun's environment. Throws Error(kUsage) for a kName that it lacks.
  RankEnvironment resolve(const Environment& own) const;
  // The patterns that match no variable of hvrun's environment.
  std::vector<std::string> unmatched_patterns(const Environment& own) const;

  bool operator==(const Exports&) const = default;

 private:
  std::vector<Export> list_;
};

Exports parse_exports(const std::vector<std::string>& texts);

}  // namespace hv::launcher
