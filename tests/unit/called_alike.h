// Whether a function of a foreign library takes what ours passes, where its header is installed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <type_traits>

namespace hv {

// Function types. Own: as the library's header declares it, with its type of results; Ours: as it
// is declared here, with int for that. Alike: the same number of arguments, each of the same size,
// and pointers as pointers.
template <class Result, class Own, class Ours>
struct CalledAlike : std::false_type {};
template <class Result, class... Own, class... Ours>
struct CalledAlike<Result, Result(Own...), int(Ours...)>
    : std::bool_constant<((sizeof(Own) == sizeof(Ours)) && ...) &&
                         ((std::is_pointer_v<Own> == std::is_pointer_v<Ours>)&&...)> {};

}  // namespace hv
