// Where this program's file lies. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace hv {

// Where it has been removed meanwhile: where it was, with the kernel's words behind it. Empty: the
// kernel does not tell.
std::string own_file();

// Its folder, without a slash at the end; "." where own_file() is empty.
std::string own_folder();

}  // namespace hv
