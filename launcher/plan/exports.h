// Exports: what the user gives to ranks by -x, parsed once, when the command line is read. Values,
// no I/O.
// SPDX-License-Identifier: Apache-2.0
//
// Of two exports of one name the later counts. horovodrun's options and --mpi export too.
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
    kName,     // NAME: the value that hvrun itself has
    kPattern,  // PREFIX_*: each variable of hvrun's that begins so, except the contract's
  };
  Form form = Form::kValue;
  std::string name;     // kPattern: with its '*'
  std::string value{};  // kValue only
  bool operator==(const Export&) const = default;
};

class Exports {
 public:
  // text: what stands behind one -x. Throws Error(kUsage) for one without a name, and for a name
  // of the contract.
  void add(const std::string& text);
  void add_value(std::string name, std::string value);
  void add_all(const Exports& later);

  const std::vector<Export>& list() const { return list_; }
  // The variables, given hvrun's own. Throws Error(kUsage) for a name that has no value there.
  RankEnvironment resolve(const Environment& own) const;
  // The patterns that add nothing.
  std::vector<std::string> unmatched_patterns(const Environment& own) const;

  bool operator==(const Exports&) const = default;

 private:
  std::vector<Export> list_;
};

Exports parse_exports(const std::vector<std::string>& texts);

}  // namespace hv::launcher
