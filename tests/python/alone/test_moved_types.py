# SPDX-License-Identifier: Apache-2.0
"""The runtime's words about tensors of types that it does not know."""

import pytest

from hvrun.moved_types import MOVED_TYPES, words_with_types

SHAPES = ["", "3", "*", "3,1", "*,2,1,1", "1,1,1"]


def carried(name, extents):
    moved = MOVED_TYPES[name]
    return moved.carrier, [*filter(None, extents.split(",")), *(["2"] if moved.is_pair else []), *map(str, moved.mark)]


@pytest.mark.parametrize("name", MOVED_TYPES)
def test_words_have_the_type_and_the_shape_that_were_given(name):
    for extents in SHAPES:
        carrier, wire = carried(name, extents)
        words = "tensor 'float32 [2,1]': rank 0 has {}, ranks 1-2 have float64 [3,1] from root 1; every rank must give one name"
        assert words_with_types(words.format(f"{carrier} [{','.join(wire)}]")) == words.format(f"{name} [{extents}]")


def test_no_two_types_travel_alike():
    wires = {(carrier, tuple(wire)): (name, extents) for name in MOVED_TYPES for extents in SHAPES
             for carrier, wire in [carried(name, extents)]}
    assert len(wires) == len(MOVED_TYPES) * len(SHAPES)
