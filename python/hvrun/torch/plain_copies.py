# SPDX-License-Identifier: Apache-2.0
"""What a copy of a wrapped optimizer is."""


class PlainCopies:
    """Of what stands before an optimizer's own class: a copy, and what is pickled, is the plain optimizer, to be wrapped again
    where it is to be used."""

    def __reduce_ex__(self, protocol):
        return _plain, (type(self).__bases__[1], self.__getstate__())


def _plain(own, state):
    optimizer = own.__new__(own)
    optimizer.__setstate__(state)
    return optimizer
