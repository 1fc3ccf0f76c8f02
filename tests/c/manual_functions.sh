#!/bin/sh
# Header, library and manual name the same functions: manual_functions.sh PAGE HEADER LIBRARY
# SPDX-License-Identifier: Apache-2.0
page=$1 header=$2 library=$3
declared=$(grep -o '^HVRUN_API.*' "$header" | grep -o 'hvrun_[a-z_]*(' | tr -d '(' | sort -u)
exported=$(nm -D --defined-only "$library" | sed 's/@.*//' | awk '$2 == "T" {print $3}' | sort -u)
described=$(grep -E '^\.F[no] hvrun_' "$page" | awk '{print $2}' | sort -u)
[ -n "$declared" ] || { echo "no function found in $header"; exit 1; }
if [ "$declared" != "$exported" ]; then
  printf 'declared:\n%s\nexported:\n%s\n' "$declared" "$exported"
  exit 1
fi
if [ "$declared" != "$described" ]; then
  printf 'declared:\n%s\ndescribed in %s:\n%s\n' "$declared" "$page" "$described"
  exit 1
fi
