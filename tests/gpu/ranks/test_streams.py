# SPDX-License-Identifier: Apache-2.0
"""The order between PyTorch's streams, its captures and the runtime's work, on real ones."""

import threading

import pytest
import torch

import hvrun.exceptions
import hvrun.torch as hvd

LONG = 200_000_000  # clock cycles of a GPU, a tenth of a second: what comes after them is not done when the host asks


def total():
    return hvd.size() * (hvd.size() + 1) / 2


def late(value, shape=(1000, 7)):
    """A tensor whose values are there only when the current stream has slept."""
    made = torch.full(shape, float("nan"), device="cuda")
    torch.cuda._sleep(LONG)
    return made.fill_(value)


def test_an_operation_reads_what_its_stream_had_been_given():
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        handle = hvd.allreduce_async(late(hvd.rank() + 1.0), op=hvd.Sum, name="late")
    result = hvd.synchronize(handle)  # on the default stream
    assert torch.equal(result, torch.full_like(result, total()))


def test_synchronize_does_not_wait_for_the_gpu():
    hvd.allreduce(torch.ones(7000, device="cuda"), op=hvd.Sum, name="communicator")
    torch.cuda.synchronize()
    result = hvd.synchronize(hvd.allreduce_async(late(hvd.rank() + 1.0), op=hvd.Sum, name="later"))
    end = torch.cuda.Event()
    end.record()
    assert not end.query()
    assert torch.equal(result, torch.full_like(result, total()))


def test_an_input_may_be_written_again_on_a_stream_that_has_waited():
    tensor = late(hvd.rank() + 1.0)
    results = []
    for _ in range(5):
        results.append(hvd.allreduce(tensor, op=hvd.Sum, name="again"))
        tensor.fill_(hvd.rank() + 1.0)
    for result in results:
        assert torch.equal(result, torch.full_like(result, total()))


def test_freed_inputs_are_not_written_by_their_next_owners():
    for step in range(20):
        handle = hvd.allreduce_async(late(hvd.rank() + 1.0) if step % 5 == 0 else torch.full((1000, 7), hvd.rank() + 1.0, device="cuda"),
                                     op=hvd.Sum, name="given away")
        torch.full((1000, 7), float("nan"), device="cuda")  # would get the input's memory
        result = hvd.synchronize(handle)
        assert torch.equal(result, torch.full_like(result, total()))


def test_a_stream_that_is_being_captured_is_refused_and_the_capture_lives():
    x = torch.ones(8, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x * 2
        with pytest.raises(hvrun.exceptions.UnsupportedError, match="captur"):
            hvd.allreduce(y, name="captured")
    x.fill_(3.0)
    graph.replay()
    assert torch.equal(y, torch.full_like(y, 6.0))
    assert hvd.allreduce(x, op=hvd.Sum, name="afterwards")[0] == 3.0 * hvd.size()


@pytest.mark.parametrize("mode", ["global", "thread_local", "relaxed"])
def test_a_capture_lives_beside_operations_of_other_threads(mode):
    x = torch.ones(8, device="cuda")
    hvd.allreduce(torch.ones(3, device="cuda"), name="communicator")
    given, captured = threading.Event(), threading.Event()
    outcome = []

    def exchange():
        with torch.cuda.stream(torch.cuda.Stream()):
            tensors = [torch.full((100000,), hvd.rank() + 1.0, device="cuda") for _ in range(8)]
            torch.cuda.current_stream().synchronize()
            given.set()
            # Enqueued before the capture or during it: the caller's own thread calls nothing of CUDA that a capture forbids.
            handles = [hvd.allreduce_async_(one, op=hvd.Sum, name=f"beside {i}") for i, one in enumerate(tensors)]
            results = [hvd.synchronize(one) for one in handles]
            captured.wait(60)
            torch.cuda.current_stream().synchronize()
            outcome.extend(bool((one == total()).all()) for one in results)

    thread = threading.Thread(target=exchange)
    thread.start()
    assert given.wait(60)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode=mode):
        y = x
        for _ in range(2000):
            y = y + 1
    captured.set()
    thread.join()
    graph.replay()
    assert torch.equal(y, torch.full_like(y, 2001.0))
    assert outcome == [True] * 8


def test_steps_of_many_sizes_leave_the_gpus_memory_as_it_was():
    def run():
        for step in range(30):
            hvd.allreduce(torch.ones(1 + 5000 * (step % 7), device="cuda"), name=f"size {step % 7}")
            hvd.allgather(torch.ones(1 + step % 7, 300, device="cuda"), name=f"rows {step % 7}")
        torch.cuda.synchronize()

    run()
    torch.cuda.empty_cache()
    before = torch.cuda.mem_get_info()[0]
    for _ in range(5):
        run()
    torch.cuda.empty_cache()
    if hvd.size() == 1:  # what the others have, they have taken from the same GPU
        assert torch.cuda.mem_get_info()[0] >= before - (16 << 20)
