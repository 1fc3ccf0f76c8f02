# SPDX-License-Identifier: Apache-2.0
"""Types of elements that the runtime does not know, and the type of the runtime's that carries each: the same for every framework.

A carrier has the width of the type; complex numbers travel as pairs. Ranks that mix a type with its carrier must not go on, so a
mark of extents of 1 stands behind the shape, longer than any tensor has them: its length says the type. The runtime compares
shapes, and so finds ranks that disagree; words_with_types() puts the type in the mark's place in the runtime's words.
"""

import re
import typing

_SHORTEST, _STEP = 16, 8  # of marks: up to 7 extents of 1 of a tensor's own may stand before one


class Moved(typing.NamedTuple):
    carrier: str
    is_pair: bool
    mark: tuple  # behind the carrier's shape


def _moved(carrier, number=0, is_pair=False):
    """number: of the types that have this carrier."""
    return Moved(carrier, is_pair, (1,) * (_SHORTEST + number * _STEP))


MOVED_TYPES = {
    "complex32": _moved("float16", is_pair=True),
    "complex64": _moved("float32", is_pair=True),
    "complex128": _moved("float64", is_pair=True),
    "uint16": _moved("int16"),
    "uint32": _moved("int32"),
    "uint64": _moved("int64"),
    "quint8": _moved("uint8"),
    "qint8": _moved("int8"),
    "qint32": _moved("int32", 1),
    "float8_e4m3fnuz": _moved("uint8", 1),
    "float8_e5m2fnuz": _moved("uint8", 2),
    "float8_e8m0fnu": _moved("uint8", 3),
    "float4_e2m1fn_x2": _moved("int8", 1),
    "bits8": _moved("int8", 2),
    "bits1x8": _moved("int8", 3),
    "bits2x4": _moved("uint8", 4),
    "bits4x2": _moved("int8", 4),
    "bits16": _moved("int16", 1),
}
_BY_MARK = {(one.carrier, len(one.mark)): name for name, one in MOVED_TYPES.items()}
_TENSOR = re.compile(r"\b(\w+) \[([\d*]+(?:,[\d*]+)*)\]")  # as the runtime says what a rank has


def words_with_types(text):
    """The runtime's words about tensors, with the types and shapes that users gave."""
    return _TENSOR.sub(lambda found: _type_and_shape(found[1], found[2].split(",")), text)


def _type_and_shape(carrier, extents):
    ones = len(extents)
    while ones and extents[ones - 1] == "1":
        ones -= 1
    ones = len(extents) - ones
    length = ones - ones % _STEP
    name = _BY_MARK.get((carrier, length), carrier)
    if name is not carrier:
        extents = extents[:len(extents) - length - MOVED_TYPES[name].is_pair]
    return f"{name} [{','.join(extents)}]"
