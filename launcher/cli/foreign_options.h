// Options of other launchers, and what they are here: for whoever has typed one by habit. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// docs/coming-from.md has all of them with remarks; here are those that people type.
#pragma once

#include <optional>
#include <string>

namespace hv::launcher {

// "that is --npernode here", "leave it out: ..."; nothing for a name that no launcher has, or that
// another option of this name stands for. name: as typed, with one dash or two, '_' for '-'.
// in_script: of hvrun script, whose nodes the scheduler chooses.
std::optional<std::string> meaning_of_foreign_option(const std::string& name, bool in_script);

// mpirun's --stdin takes a rank, "none" or "all" in the next word; here such a word would be the
// program. Returns what to write instead; nothing for another option or word.
std::optional<std::string> advice_on_detached_value(const std::string& option,
                                                    const std::string& word);

}  // namespace hv::launcher
