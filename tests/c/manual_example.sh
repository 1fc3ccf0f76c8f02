#!/bin/sh
# Cuts the first literal example out of a man page: manual_example.sh PAGE OUTPUT
# SPDX-License-Identifier: Apache-2.0
sed -n '/^\.Bd -literal/,/^\.Ed/{/^\./d;s/\\e/\\/g;p;}' "$1" > "$2"
