# SPDX-License-Identifier: Apache-2.0
"""What hvrun raises. Names that Horovod's users know are its; the text is the runtime's: what was done, where, why, what to try."""

from hvrun import _abi
from hvrun._called import called
from hvrun.moved_types import words_with_types


class HorovodInternalError(RuntimeError):
    """An operation failed, or could not begin. `status` is the runtime's name for it, "peer lost" for one."""

    status = ""


class PeerLostError(HorovodInternalError):
    """A rank died or went silent; the text names it."""


class ShutdownError(HorovodInternalError):
    """The job was left, by this rank or by a peer."""


class StalledError(HorovodInternalError):
    """Ranks did not come to an operation for longer than HVRUN_STALL_SHUTDOWN_SECONDS."""


class MismatchError(HorovodInternalError):
    """Ranks disagree on the type, shape, operation or root of one name."""


class ContractError(HorovodInternalError):
    """This process cannot join: its variables are wrong, or it is a fork of a rank."""


class WorkerError(ContractError, ValueError):
    """A call for ranks, in a process that a rank has started."""


class ArgumentError(HorovodInternalError, ValueError):
    """A request that is malformed, on this rank."""


class DuplicateNameError(HorovodInternalError, ValueError):
    """The name is in flight already."""


class UnsupportedError(HorovodInternalError, NotImplementedError):
    """No backend carries this out."""


class NotInitializedError(ValueError):
    """hvd.init() has not been called, or hvd.shutdown() has."""

    def __init__(self, words=None):  # words: where it is pickled
        function = called()
        super().__init__(
            words or f"{function + '()' if function else 'this'} needs a job that has been joined; call hvd.init() first")


class HostsUpdatedInterrupt(RuntimeError):
    """Hosts have joined or left: the training function is to begin anew from the state as it is."""

    def __init__(self, skip_sync):
        super().__init__("the job's hosts have changed")
        self.skip_sync = skip_sync


class LibraryError(ImportError):
    """libhvrun cannot be loaded; the text says where it was looked for."""


_BY_STATUS = {
    _abi.ERROR_ARGUMENT: ArgumentError,
    _abi.ERROR_MISMATCH: MismatchError,
    _abi.ERROR_DUPLICATE: DuplicateNameError,
    _abi.ERROR_PEER_LOST: PeerLostError,
    _abi.ERROR_SHUTDOWN: ShutdownError,
    _abi.ERROR_UNSUPPORTED: UnsupportedError,
    _abi.ERROR_CONTRACT: ContractError,
    _abi.ERROR_STALLED: StalledError,
}


def of_status(status, name, text):
    """The exception for a status that is an error. name: of the status; text: the runtime's words."""
    error = _BY_STATUS.get(status, HorovodInternalError)(words_with_types(text) if status == _abi.ERROR_MISMATCH else text)
    error.status = name
    return error
