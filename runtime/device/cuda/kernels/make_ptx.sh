#!/bin/sh
# Makes kernels.ptx anew, after a change of the kernels: runtime/device/cuda/kernels/make_ptx.sh > kernels.ptx
# SPDX-License-Identifier: Apache-2.0
#
# usage: make_ptx.sh [NVCC]
#
# The text is for the oldest cards that the kernels are for, and every newer one. Its .version is lowered to the oldest
# that knows those (6.3, of CUDA 10.0) and has all that the kernels use: what the compiler writes there is its own, which
# no driver of an older CUDA takes. The digest is of the sources, so that a text that is older than they are is told
# where there is no such compiler to make it anew.
set -eu
cd "$(dirname "$(readlink -f "$0")")/../../../.."
nvcc=${1:-nvcc}
echo '// The kernels of move.cu for the driver to compile: made by make_ptx.sh, never edited.'
echo '// SPDX-License-Identifier: Apache-2.0'
echo "// Made of sources $(python3 -B tests/lint/kernel_sources.py)"
"$nvcc" -std=c++17 -fmad=false -I. -arch=compute_75 -ptx -o - runtime/device/cuda/kernels/move.cu |
  sed -E -e '/^\/\/ Cuda compilation tools/p' -e '/^[[:space:]]*(\/\/.*)?$/d' \
    -e 's/^\.version .*/.version 6.3/' -e 's/^\t+//' -e 's/[ \t]+/ /g'
