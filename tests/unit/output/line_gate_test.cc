// SPDX-License-Identifier: Apache-2.0
#include "launcher/output/line_gate.h"

#include <doctest/doctest.h>

using hv::launcher::LineGate;

TEST_CASE("line_gate drops whole lines where there is no room") {
  LineGate gate;
  CHECK(gate.pass("one\ntwo\nth", true) == "one\ntwo\nth");
  CHECK(gate.pass("re", false) == "re");
  CHECK(gate.pass("e\nfour\nfi", false) == "e\n");
  CHECK(gate.pass("ve", true) == "");
  CHECK(gate.pass("\n\nsix\n", true) == "\nsix\n");
  CHECK(gate.pass("seven\neight", false) == "");
  CHECK(gate.pass("\nnine", true) == "nine");
}

TEST_CASE("line_gate cuts a line that has begun and whose end is too far away, and ends it") {
  LineGate gate(4);
  CHECK(gate.pass("ab", true) == "ab");
  CHECK(gate.pass("cdef", false) == "cdef");
  CHECK(gate.pass("g", false) == "");
  CHECK(gate.pass("h", true) == "");
  CHECK(gate.pass("i\nnext\n", true) == "\nnext\n");
  CHECK(gate.pass("ab", true) == "ab");
  CHECK(gate.pass("cdef\n", false) == "\n");
  CHECK(gate.pass("ab", true) == "ab");
  CHECK(gate.pass("cde\n", false) == "cde\n");
}
