#!/bin/sh
# Cuts the literal example of that number out of a man page: manual_example.sh PAGE NUMBER OUTPUT
# SPDX-License-Identifier: Apache-2.0
awk -v wanted="$2" '
  /^\.Sh/ { counts = /EXAMPLES/ }
  /^\.Bd -literal/ && counts { inside = ++number == wanted; next }
  /^\.Ed/ { inside = 0 }
  inside { gsub(/\\e/, "\\"); print }' "$1" > "$3"
