// How a rank's Python lets its agent read where it stands; python/hvrun/_stacks.py says the same.
// SPDX-License-Identifier: Apache-2.0
//
// The package hvrun opens a memory file of that name and has faulthandler write every thread's
// stack into it when that signal comes. Forked children share both: whoever asks several of them
// asks one after the other.
#pragma once

namespace hv {

// SIGRTMIN + 14 of glibc. By its number: C libraries differ in what SIGRTMIN is, and an agent is
// linked with another one than Python may be.
inline constexpr int kStacksSignal = 48;
inline constexpr char kStacksFile[] = "hvrun-stacks";

}  // namespace hv
