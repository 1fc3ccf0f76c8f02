# SPDX-License-Identifier: Apache-2.0
"""Errors go from process to process, as multiprocessing sends them."""

import pickle

import pytest

import hvrun.torch as hvd
from hvrun import exceptions

CLASSES = [one for one in vars(exceptions).values() if isinstance(one, type) and issubclass(one, Exception)]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_an_error_is_pickled_with_its_words(kind):
    error = kind("some words")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is kind and str(again) == str(error)


def test_an_error_before_init_keeps_the_name_of_what_was_called():
    with pytest.raises(exceptions.NotInitializedError) as raised:
        hvd.rank()
    assert "hvd.rank()" in str(pickle.loads(pickle.dumps(raised.value)))
