# SPDX-License-Identifier: Apache-2.0
"""What orders the runtime's work on a GPU with PyTorch's, over streams that only note what they are told: there is no GPU here."""

import gc
import types

import pytest
import torch

from hvrun.torch import gpu


class Stream:
    def __init__(self, number):
        self.cuda_stream, self.device, self.waited = 1000 + number, torch.device("cuda", 3), []

    def wait_stream(self, other):
        self.waited.append(other)


class Event:
    has_passed = False

    def record(self, stream):
        self.stream = stream

    def query(self):
        return Event.has_passed


@pytest.fixture
def streams(monkeypatch):
    """Four of GPU 3; `current` is the one that is."""
    made = types.SimpleNamespace(all=[Stream(number) for number in range(4)])
    made.current = made.all[0]
    made.are_captured = False
    monkeypatch.setattr(torch.cuda, "current_stream", lambda device=None: made.current)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "is_current_stream_capturing", lambda: made.are_captured)
    monkeypatch.setattr(Event, "has_passed", False)
    monkeypatch.setattr(gpu, "_leaving", type(gpu._leaving)())
    return made


def test_the_hosts_tensors_need_no_order(streams):
    order = gpu.order_of(torch.zeros(3))
    order.follow()
    assert order.fields == {} and gpu.lies_directly(torch.zeros(3))


def test_a_request_names_the_gpu_and_the_stream_that_fills_the_input(streams):
    assert gpu.OnGpu(torch.device("cuda", 3)).fields == {"device": 4, "stream": 1000}


def test_whoever_waits_on_another_stream_follows_the_one_of_the_operation(streams):
    order = gpu.OnGpu(torch.device("cuda", 3))
    order.follow()
    assert streams.all[0].waited == []
    streams.current = streams.all[2]
    order.follow()
    assert streams.all[2].waited == [streams.all[0]]


def test_an_operation_comes_after_all_streams_that_have_work_of_its_input(streams):
    gathered = gpu.Gathered(torch.device("cuda", 3))
    for stream in (0, 1, 1, 2, 0):
        streams.current = streams.all[stream]
        gathered.note()
    streams.current = streams.all[1]
    gathered.gather()
    assert streams.all[1].waited == [streams.all[0], streams.all[2]]
    assert gathered.fields["stream"] == 1001
    streams.current = streams.all[3]
    gathered.follow()
    assert streams.all[3].waited == [streams.all[1]]
    gathered.gather()
    assert streams.all[3].waited == [streams.all[1]], "what was noted before belongs to the operation before"


def test_a_bucket_on_the_host_gathers_nothing(streams):
    gathered = gpu.Gathered(torch.device("cpu"))
    gathered.note()
    gathered.gather()
    gathered.follow()
    assert gathered.fields == {} and not any(stream.waited for stream in streams.all)


def test_the_runtimes_memory_goes_back_when_the_stream_has_passed(streams, monkeypatch):
    given_back = []

    class Owner:
        def __del__(self):
            given_back.append(self)

    monkeypatch.setattr(torch, "as_tensor", lambda piece, device: piece)  # which PyTorch keeps for as long as the tensor
    first = gpu.bytes_over(0x1000, 64, Owner(), torch.device("cuda", 3))
    assert first.__cuda_array_interface__ == {"shape": (64,), "typestr": "|u1", "data": (0x1000, False), "version": 3}
    del first
    gc.collect()
    second = gpu.bytes_over(0x2000, 64, Owner(), torch.device("cuda", 3))
    assert not given_back, "the stream may still read it"
    Event.has_passed = True
    del second
    third = gpu.bytes_over(0x3000, 64, Owner(), torch.device("cuda", 3))
    assert len(given_back) == 2
    del third


def test_what_goes_while_a_graph_is_captured_is_marked_afterwards(streams, monkeypatch):
    class Captured(Event):
        def record(self, stream):
            assert not streams.are_captured, "the event would be the graph's"

        def query(self):
            assert not streams.are_captured, "the capture would be void"
            return True

    monkeypatch.setattr(torch.cuda, "Event", Captured)
    monkeypatch.setattr(torch, "as_tensor", lambda piece, device: piece)
    device = torch.device("cuda", 3)
    earlier, first = (gpu.bytes_over(address, 64, object(), device) for address in (0x1000, 0x2000))
    del earlier
    streams.are_captured = True
    del first
    gc.collect()
    second = gpu.bytes_over(0x3000, 64, object(), device)
    assert len(gpu._leaving) == 2
    streams.are_captured = False
    third = gpu.bytes_over(0x4000, 64, object(), device)
    assert not gpu._leaving
    del second, third


def test_what_pytorch_keeps_of_memory_at_an_address_is_there_once():
    """PyTorch 2.11 loses a reference to each of these values with every tensor."""
    address, size = 0x7F0000000000, 1 << 20
    first, again = (gpu.Piece(int(str(address)), int(str(size)), None).__cuda_array_interface__ for _ in range(2))
    assert all(first[key] is again[key] for key in first)
    other = gpu.Piece(address + size, size, None).__cuda_array_interface__
    assert other["data"] == (address + size, False) and first["data"] == (address, False)
