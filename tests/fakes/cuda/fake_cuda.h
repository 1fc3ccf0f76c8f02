// What the tests and the stand-in for NCCL ask the stand-in for libcuda.so.1 beside CUDA's own
// functions; looked up in the opened library.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

extern "C" {
#pragma GCC visibility push(default)
// Where the host reads and writes a GPU's memory; nullptr: it is none. Only for what is in order
// with all streams that use it.
std::byte* fake_cuda_view(std::uintptr_t address, std::size_t bytes);
// A GPU's memory goes at once, whatever may still use it: its work fails then. False: it is none.
bool fake_cuda_unmap(std::uintptr_t address);
// From now on, or no longer, a graph is being captured from this stream (nullptr: the default one).
void fake_cuda_capture(void* stream, bool is_on);
// True: a call that a capture forbids has come since it began, so it is invalid.
bool fake_cuda_broke_capture();
// Puts work on a stream, as a launch does.
void fake_cuda_put(void* stream, void (*work)(void*), void* argument);
// From now on, or no longer, somebody is about to put work on the stream that its caller takes for
// put: an event that is recorded there would not wait for it, and is refused.
void fake_cuda_forbid_records(void* stream, bool is_on);
// The GPU of the calling thread's context, and the 16 bytes of its UUID; -1: no context is current.
int fake_cuda_device(char* uuid);
// As HVRUN_FAKE_CUDA_FAULTS, instead of what that said, of the calls that come from now on.
void fake_cuda_faults(const char* list);
// How often that function has been called in this process.
int fake_cuda_calls(const char* function);
// Streams on which something has failed, such as a kernel beyond its memory.
int fake_cuda_failures();
// Streams of the highest priority that have been made.
int fake_cuda_urgent_streams();
// Streams, events and pieces of memory that have been made and not given back.
int fake_cuda_left();
#pragma GCC visibility pop
}
