#!/usr/bin/env bash
# Trains the digits with hvrun, on this machine or over SSH on hosts made for it, and judges the result.
# SPDX-License-Identifier: Apache-2.0
#
# Exit code 0 only when hvrun succeeded, the accuracy is at least 0.95 and every rank ended with the same weights.
set -euo pipefail
readonly LOWEST_ACCURACY=0.95
readonly RANKS_A_HOST=2
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)
bin=${HVRUN_BIN_DIR:-$root/build/release/bin}
unset HVRUN_BIN_DIR # hvrun would warn that it sets nothing there
log=$(mktemp)
trap 'rm -f "$log"' EXIT

usage() {
  echo "usage: examples/demo.sh [--hosts N]   with HVRUN_BIN_DIR naming the folder of hvrun" >&2
  exit 2
}

fail() {
  echo "demo: $1" >&2
  exit 1
}

# Shows a command and runs it; its standard output also goes into the log.
show_and_run() { # words
  echo "\$ $*"
  env "$@" | tee "$log" || fail "$(ending "${PIPESTATUS[0]}")"
}

ending() { # exit code; hvrun passes on a signal that ended a rank as a shell does
  if [ "$1" -gt 128 ]; then
    echo "hvrun or one of its ranks was killed by signal $(($1 - 128)) (exit code $1)"
  else
    echo "hvrun ended with exit code $1, see above"
  fi
}

# Reads a job's log; succeeds when it shows a trained model and `ranks` equal hashes.
judge() { # ranks where
  awk -v ranks="$1" -v where="$2" -v lowest="$LOWEST_ACCURACY" '
    match($0, /weights hash [0-9a-f]+$/) { hashes++; kinds[substr($0, RSTART)]++ }
    match($0, /(^|\] )test accuracy [0-9.]+$/) { accuracy = $NF }
    END {
      for (kind in kinds) different++
      if (accuracy == "") fault = "no test accuracy was printed"
      else if (accuracy + 0 < lowest) fault = "the test accuracy is " accuracy ", below " lowest
      else if (hashes != ranks) fault = (hashes + 0) " of " ranks " ranks printed the hash of their weights"
      else if (different != 1) fault = "the ranks ended with " different " different sets of weights"
      if (fault != "") { print "demo: FAILED: " fault; exit 1 }
      print "demo: OK: " ranks " ranks on " where " trained to a test accuracy of " accuracy " and hold the same weights"
    }' "$log"
}

on_this_machine() {
  show_and_run "$bin/hvrun" -np "$RANKS_A_HOST" "$bin/examples/train_digits"
  judge "$RANKS_A_HOST" "this machine"
}

# Two ranks on each of node1 .. nodeN. hosts.py gives hvrun a login host with SSH keys and takes all away again.
on_hosts() { # number
  show_and_run "HVRUN_BIN_DIR=$bin" python3 -B tests/cluster/hosts.py run --hosts "$1" -- \
    hvrun -H "$(seq -f "node%.0f:$RANKS_A_HOST" -s , "$1")" "$(realpath "$bin")/examples/train_digits"
  judge "$(($1 * RANKS_A_HOST))" "$1 hosts"
}

main() {
  [ -x "$bin/hvrun" ] || fail "there is no $bin/hvrun; './dev build' builds it, HVRUN_BIN_DIR names another place"
  bin=$(cd "$bin" && pwd)
  bin=${bin#"$root/"} # so that what is shown can be typed in the clone
  cd "$root"
  case "${1:-}" in
    '') on_this_machine ;;
    --hosts)
      [[ $# = 2 && $2 =~ ^[1-9][0-9]?$ ]] || usage
      on_hosts "$2"
      ;;
    *) usage ;;
  esac
}

main "$@"
