// What tests ask the stand-in for libnccl.so.2 beside NCCL's own functions; looked up in the opened
// library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

extern "C" {
#pragma GCC visibility push(default)
// As HVRUN_FAKE_NCCL_FAULTS, instead of what that said, of the calls that come from now on. A hang
// of what has a communicator's work to do lasts until that is aborted; any other is for ever.
void fake_nccl_faults(const char* list);
// How often that function has been called in this process.
int fake_nccl_calls(const char* function);
// Communicators, registrations and pieces of memory that have been made and not given back.
int fake_nccl_left();
// Ranks that have come where this process made the id, by now.
int fake_nccl_guests();
#pragma GCC visibility pop
}
