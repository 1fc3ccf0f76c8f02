#!/bin/sh
# The kernels for one set of instructions give the linker no function that the rest of the program might take for
# its own: it would stop any processor without those instructions. SPDX-License-Identifier: Apache-2.0
#
# usage: own_code.sh OBJECT...
set -eu
checked=0
for object; do
  case "$object" in *kernels_avx*.o | *kernels_neon*.o) ;; *) continue ;; esac
  checked=$((checked + 1))
  if nm --defined-only --demangle "$object" | grep ' W '; then
    echo "$object: defines these for all of the program; give them internal linkage or take them elsewhere" >&2
    exit 1
  fi
done
[ $checked -ge 3 ] || { echo "$checked objects of kernels, expected at least 3" >&2; exit 1; }
