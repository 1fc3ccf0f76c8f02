#!/bin/sh
# The kernels' unit tests for 64-bit ARM: compiled by the distribution's cross compiler, run by qemu.
# SPDX-License-Identifier: Apache-2.0
#
# usage: neon_under_qemu.sh SOURCE_FOLDER SCRATCH_FOLDER. Exit code 77: skipped, the reason is printed.
set -eu
source=$1 scratch=$2
compiler=aarch64-linux-gnu-g++ emulator=qemu-aarch64-static
for program in $compiler $emulator; do
  command -v "$program" >/dev/null && continue
  echo "skipped: there is no $program here (Debian: g++-aarch64-linux-gnu, qemu-user-static)"
  exit 77
done
mkdir -p "$scratch"
cd "$scratch"
rm -f ./*.o  # an older run may have made others
compile() { # NAME SOURCE OPTIONS...: NAME.o; through ccache, where there is one
  name=$1 file=$2
  shift 2
  $(command -v ccache || true) $compiler -std=c++20 -I"$source" "$@" -c "$source/$file" -o "$name.o"
}
# As runtime/device/CMakeLists.txt compiles them; what is only compared with may be slow.
compile neon runtime/device/kernels_neon.cc -O3 -ffp-contract=off -fwrapv -Wno-psabi
for form in portable avx2 avx512; do
  compile $form runtime/device/kernels_$form.cc -O1 -ffp-contract=off -fwrapv -Wno-psabi
done
for part in kernel_list element_type; do compile $part runtime/device/$part.cc -O1; done
compile main tests/unit/main.cc -O0
compile drawn tests/ranks/drawn.cc -O1
# The cross compiler does not look where Debian puts doctest.
ln -sfn /usr/include/doctest doctest
for test in kernels vector_kernels float8; do
  compile ${test}_test tests/unit/device/${test}_test.cc -O0 -I"$scratch"
done
$compiler -static ./*.o -o kernels_test
# Fewer sizes than on this processor itself, and never the whole product.
HVRUN_TEST_EMULATED=1 HVRUN_TEST_SCALE=0.1 $emulator ./kernels_test
$emulator ./kernels_test --test-case='*listed best first*' --success | grep 'kernels here: neon portable'
