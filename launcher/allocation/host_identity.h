// When two names mean the same host. Pure.
// SPDX-License-Identifier: Apache-2.0
//
// "n1" is the short form of "n1.lab" and "n1.lab.example", and "n1.lab" one of "n1.lab.example".
// Case does not count. An address has no other form; "job.1.example" and "job.2.example" are two
// hosts, each of which "job" may mean.
#pragma once

#include <string>
#include <string_view>

namespace hv::launcher {

bool is_address(std::string_view name);

// The same but for case, or one is a form of the other.
bool is_same_host(std::string_view one, std::string_view other);

// Equal for all forms of a name: its first part in lower case. Of an address: itself.
std::string shortest_form(std::string_view name);

}  // namespace hv::launcher
