// The entry of every unit test program.
// SPDX-License-Identifier: Apache-2.0
// Some tests send real signals to this process: the handlers must be those of the code under test.
#define DOCTEST_CONFIG_NO_POSIX_SIGNALS
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

// Under a sanitizer, too, memory that is not to be had is a null pointer, not the program's end.
extern "C" __attribute__((visibility("default"))) const char* __asan_default_options() {
  return "allocator_may_return_null=1";
}
extern "C" __attribute__((visibility("default"))) const char* __tsan_default_options() {
  return "allocator_may_return_null=1";
}
