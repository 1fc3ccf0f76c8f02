# SPDX-License-Identifier: Apache-2.0
"""Gradients that lie one behind the other, a bucket of them one allreduce: in memory which the ranks of a host share, or in that
of a rank's GPU.

Each parameter's hook makes one copy, into its place there, and leaves `grad` pointing at that place: nothing is unpacked
afterwards. What cannot point there (a gradient with a graph, of another type or device) is copied there and back. The tensor
that users get has a storage of its own over that memory: what they make of it (`grad.data = ...`, `model.double()`,
`share_memory()`) moves that tensor away, and not the place.
"""

import ctypes
import functools
import os
import re
import sys
import zlib

import torch

from hvrun import _abi
from hvrun._library import library
from hvrun.inflight import enqueue, nothing
from hvrun.torch import gpu
from hvrun.torch.tensors import TYPES, over_memory

_ALIGNMENT = 64
_MOST_COPIED_BYTES = 32 << 20


class _GpuMemory:
    """Of PyTorch's, which keeps it for others in the order of its streams. With zeros, in the gaps, too."""

    def __init__(self, size, device):
        self._hold(torch.zeros(max(size, 1), dtype=torch.uint8, device=device))

    def _hold(self, all_bytes):
        self._bytes = all_bytes
        self.address, self.size = all_bytes.data_ptr(), all_bytes.numel()

    def tensor(self, offset, dtype, shape, strides):
        piece = gpu.Piece(self.address + offset, shape.numel() * dtype.itemsize, self)
        flat = torch.as_tensor(piece, device=self._bytes.device)
        return torch.empty(0, dtype=dtype, device=flat.device).set_(flat.untyped_storage(), 0, shape, strides)


class _GpuWindow(_GpuMemory):
    """The runtime's, from all ranks of the process set at once: where NCCL has windows, it needs no copy of what lies there."""

    def __init__(self, size, device, name, process_set):
        order = gpu.OnGpu(device)
        pending = enqueue(_abi.ALLOCATE, name, _abi.UINT8, (max(size, 1),), 0, None,
                          lambda result, owner: over_memory(result, owner, device), process_set=process_set, **order.fields)
        self._hold(pending.wait())
        order.follow()
        self._bytes.zero_()
        gpu.note_window(self, self.address, self.size)


class _HostMemory:
    """From hvrun_alloc; freed with the last tensor that lies in it."""

    def __init__(self, size):
        at = ctypes.c_void_p()
        library().check(library().alloc(None, max(size, 1), ctypes.byref(at)))
        self.address, self.size = at.value, size
        self._free = library().free
        ctypes.memset(self.address, 0, size)  # the gaps, too, take part

    def tensor(self, offset, dtype, shape, strides):
        """A tensor with a storage of its own there. It is no view of another one, so that `detach_()` works on it."""
        memory = (ctypes.c_char * (shape.numel() * dtype.itemsize)).from_address(self.address + offset)
        memory.owner = self
        flat = torch.frombuffer(memory, dtype=dtype)
        return torch.empty(0, dtype=dtype).set_(flat.untyped_storage(), 0, shape, strides)

    def __del__(self):
        if not sys.is_finalizing():
            self._free(self.address)


def is_dense(tensor):
    """Whether its elements fill their memory without gaps, in whatever order: contiguous, channels_last, transposed."""
    expected = 1
    for stride, extent in sorted(zip(tensor.stride(), tensor.shape)):
        if extent == 1:
            continue
        if stride != expected:
            return False
        expected *= extent
    return True


def _dense_strides(tensor):
    """Those of the tensor, or where it has gaps of a contiguous one."""
    return tensor.stride() if is_dense(tensor) else _contiguous_strides(tensor)


def _contiguous_strides(tensor):
    return torch.empty_like(tensor, memory_format=torch.contiguous_format).stride()


def layout_number(parameter):
    """The same on ranks that lay a gradient of this shape out alike."""
    return zlib.crc32(repr(_dense_strides(parameter.detach())).encode())


def version_of(gradient):
    """Of what is a view, to a tensor of all gradients say, it tells nothing: that has one version for all of them."""
    return 0 if gradient is None or gradient._base is not None else gradient._version


def _references():
    parameter = torch.empty(0, requires_grad=True)
    parameter.grad = torch.empty(0)
    gradient = parameter.grad
    return sys.getrefcount(gradient)


_UNSHARED = _references()  # what getrefcount() says where a parameter and one local name are all that have a gradient


class Place:
    """A parameter's place in a bucket. make: a tensor with a storage of its own there."""

    __slots__ = ("bucket", "view", "is_taken", "left", "version", "_make", "_lent", "_bytes", "_is_copied_past_caches")

    def __init__(self, bucket, make):
        self.bucket, self._make = bucket, make
        self.view = make()  # nobody else has it
        self._lent = make()  # what becomes the parameter's gradient
        self.is_taken = False
        self.left = None  # what has become it: that tensor, or what has to get the result back
        self.version = 0
        self._bytes = self.view.numel() * self.view.element_size()
        # By one thread, which keeps the interpreter's lock: a short time only, and not where torch would take several.
        self._is_copied_past_caches = self.view.is_cpu and self._bytes <= _MOST_COPIED_BYTES and torch.get_num_threads() == 1

    def take(self, parameter):
        """The parameter's gradient is complete: it goes there, if it is not there already."""
        gradient = parameter.grad
        if gradient.layout is not torch.strided:
            self.view.copy_(gradient.detach().to_dense())
        elif not self._is_here(gradient):
            # To the user, who expects the result in it; a lent one that has been moved away is known here.
            is_known = sys.getrefcount(gradient) > _UNSHARED and gradient is not self._lent
            self._copy(gradient)
            if not is_known and self._may_replace(gradient):
                parameter.grad = self._lend()
        self._taken(parameter.grad)

    def fits(self, parameter):
        """Not where it has got data of another kind since the place was made."""
        view, gradient = self.view, parameter.grad
        return (parameter.shape == view.shape and parameter.dtype == view.dtype and parameter.device == view.device
                and (gradient is None or gradient.shape == view.shape))

    def _is_here(self, tensor):
        view = self.view
        return (tensor.data_ptr() == view.data_ptr() and tensor.dtype == view.dtype and tensor.shape == view.shape
                and tensor.stride() == view.stride())

    def _lend(self):
        """A tensor here; another one where somebody has moved the last one away."""
        if not self._is_here(self._lent):
            self._lent = self._make()
        return self._lent

    def _copy(self, gradient):
        """Past the caches where it lies as the view does: nobody reads it here before it has been averaged."""
        view = self.view
        is_alike = (self._is_copied_past_caches and gradient.stride() == view.stride() and gradient.dtype == view.dtype
                    and gradient.device == view.device and not gradient.is_neg())
        # Refused where there is no memory: of a tensor that is zero without any.
        if not is_alike or library().copy(view.data_ptr(), gradient.data_ptr(), self._bytes) != _abi.OK:
            view.copy_(gradient.detach())

    def take_zeros(self, parameter):
        """This rank has none."""
        parameter.grad = self._lend()
        self.skip(parameter.grad)

    def skip(self, left=None):
        """Zeros take part, whatever the gradient is."""
        self.view.zero_()
        self._taken(left)

    def _taken(self, left):
        self.left = left
        self.version = version_of(left)
        self.is_taken = True

    def _may_replace(self, gradient):
        view = self.view
        is_whole = gradient._base is None and gradient.untyped_storage().nbytes() <= self._bytes
        return is_whole and gradient.dtype == view.dtype and gradient.device == view.device and not gradient.requires_grad

    def settle(self, parameter):
        """The exchange is over: the result is the parameter's gradient. False where somebody has changed that meanwhile."""
        left, self.left, self.is_taken = self.left, None, False
        if left is None:
            return True
        is_same = parameter.grad is left and version_of(left) == self.version
        is_lent = left is self._lent  # else a tensor of the user's
        if parameter.grad is left and is_lent and self._is_here(left):
            return is_same
        give_back(parameter, self.view)
        return is_same and not is_lent


def give_back(parameter, result):
    """The result becomes the gradient, or its values do where that is another tensor of the user's."""
    gradient = parameter.grad
    if gradient is result:
        return
    fits = gradient is not None and gradient.layout is torch.strided and gradient.shape == result.shape
    if fits:
        gradient.detach().copy_(result)
    else:
        parameter.grad = result.clone()


class Bucket:
    """Places that are exchanged together."""

    def __init__(self, name, dtype, parameters, plain, process_set=0, in_window=False):
        """plain: parameters that lie there as contiguous ones, whatever they are. in_window: on a GPU all ranks of the set make
        the bucket at once, for NCCL's windows."""
        self.name, self.kind = name, TYPES[dtype]
        self.places = {}
        offsets, size = [], 0
        for parameter in parameters:
            offsets.append(size)
            size += -(-parameter.numel() * parameter.element_size() // _ALIGNMENT) * _ALIGNMENT
        device = parameters[0].device
        self.is_on_host = device.type == "cpu"
        if self.is_on_host:
            self._memory = _HostMemory(size)
        elif in_window:
            self._memory = _GpuWindow(size, device, name + ".memory", process_set)
        else:
            self._memory = _GpuMemory(size, device)
        self._order = gpu.Gathered(device)
        self._count = size // dtype.itemsize
        for parameter, offset in zip(parameters, offsets):
            strides = _contiguous_strides(parameter) if parameter in plain else _dense_strides(parameter.detach())
            make = functools.partial(self._memory.tensor, offset, dtype, parameter.shape, strides)
            self.places[parameter] = Place(self, make)
        self._missing = len(self.places)
        self._pending = None

    def arrived(self):
        """One more place is taken; True: all are."""
        self._order.note()
        self._missing -= 1
        return self._missing == 0

    def is_started(self):
        return self._pending is not None

    def start(self, **fields):
        """fields: of hvrun_request: how gradients are reduced."""
        address = self._memory.address
        self._order.gather()
        self._pending = enqueue(_abi.ALLREDUCE, self.name, self.kind, (self._count,), address, self._memory, nothing,
                                output=address, output_bytes=self._memory.size, **self._order.fields, **fields)

    def finish(self):
        """Waits. Raises what went wrong."""
        pending, self._pending = self._pending, None
        pending.wait()
        self._order.follow()

    def begin_anew(self):
        """After an exchange: all places are to be taken again."""
        self._missing = len(self.places)

    def reset(self):
        """No place is taken, and nothing is on its way that anybody waits for."""
        self._pending = None
        self._missing = len(self.places)
        for place in self.places.values():
            place.is_taken, place.left = False, None


def give_freed_memory_back():
    """What the C library keeps of it goes to the system. For when gradients have come to lie in buckets: each lives elsewhere
    only for a moment from then on, so that room for all of them at once is not wanted again."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)  # glibc's
    if trim is not None:
        trim(0)


def can_lie_in_bucket(parameter):
    return (gpu.lies_directly(parameter) and parameter.dtype.is_floating_point and parameter.dtype in TYPES
            and parameter.layout is torch.strided and parameter.numel() > 0)


def bucket_bytes():
    """What HVRUN_BUCKET_BYTES says, in the runtime's words: 65536, 64K or 25MiB. It has refused all others in hvrun_init."""
    text = os.environ.get("HVRUN_BUCKET_BYTES") or "25M"
    count, unit = re.match(r"\s*\+?(\d+)\s*([kmg]?)", text.lower()).groups()
    return int(count) << {"": 0, "k": 10, "m": 20, "g": 30}[unit]


def wants_windows():
    """What HVRUN_NCCL_WINDOWS says, by which this rank's buckets on a GPU may lie in windows if all others' may."""
    return os.environ.get("HVRUN_NCCL_WINDOWS", "").lower() in ("1", "true", "yes", "on")


def split_into_buckets(parameters, limit_bytes):
    """Lists of parameters of one type each, in the order given, of at most limit_bytes unless one alone is larger."""
    open_lists, done, sizes = {}, [], {}
    for parameter in parameters:
        dtype, size = parameter.dtype, parameter.numel() * parameter.element_size()
        if dtype in open_lists and sizes[dtype] + size > limit_bytes:
            done.append(open_lists.pop(dtype))
        if dtype not in open_lists:
            open_lists[dtype], sizes[dtype] = [], 0
        open_lists[dtype].append(parameter)
        sizes[dtype] += size
    return done + list(open_lists.values())
