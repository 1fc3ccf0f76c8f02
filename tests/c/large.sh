#!/bin/sh
# Tensors over 4 GiB take 15 GiB of memory and a minute: label large, run by ./dev test --full only. 77: skipped.
# SPDX-License-Identifier: Apache-2.0
# large.sh PROGRAM HVRUN OPTION...
available=$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)
if [ "$available" -lt 15 ]; then
  echo "skipped: $available GiB of memory are available, 15 are needed"
  exit 77
fi
program=$1
shift
exec "$@" "$program"
