"""Trials inside a confined process: each promise is kept if all that would break it is refused.

What was asked of the kernel may not hold on it. So a promise is told as enforced only after the
process has tried to break it in every way known, and each try was forbidden. A try is made so that
it does no harm where it is not: on nothing, or to the state that there is.
"""

from __future__ import annotations

import ctypes
import mmap
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path

from faithbench.submissions.sandbox.messages import Promise

Attempt = Callable[[], object]

# Numbers that x86-64 and 64-bit ARM share; ioprio_set, which has two, follows by architecture.
_SETXATTRAT, _IO_URING_SETUP, _PIDFD_OPEN = 463, 425, 434
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_SET_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG of prctl(2)
_CLONE_NEWUSER = 0x10000000
_FS_IOC_SETFLAGS = 0x40086602
_NO_KIND = 99  # of process, group or user: a priority that is set for it is set for nobody
_NOBODY = 0x7FFFFFFF  # an id of shared memory or of a queue that nobody has


def kept_promises(
    writable: Path, memory: int, hidden: Sequence[Path], *, memory_limited: bool
) -> Mapping[Promise, bool]:
    """Return each promise and whether it is kept, as tried by this process on itself.

    `hidden` are files with labels; `memory` is the limit in bytes.
    """
    kept = {promise: _all_refused(tries) for promise, tries in _tries(writable, hidden).items()}
    # The limit's own try fails for want of memory, and kernel buffers would be counted by none.
    kept[Promise.MEMORY] = (
        kept[Promise.MEMORY] and memory_limited and not _allocates(memory + mmap.PAGESIZE)
    )
    return kept


def _tries(writable: Path, hidden: Sequence[Path]) -> dict[Promise, Sequence[Attempt]]:
    parent = os.getppid()
    return {
        Promise.MEMORY: (socket.socketpair, _grow_pipe, _memfd),
        Promise.NETWORK: (
            partial(socket.socket, socket.AF_INET, socket.SOCK_STREAM),
            partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM),
            partial(socket.socket, socket.AF_UNIX, socket.SOCK_DGRAM),
            socket.socketpair,
            partial(_connect, b"/nowhere"),
            partial(_connect, b"\0abstract"),
            partial(_send, b"/nowhere"),
            partial(_send, b"\0abstract"),
            partial(_syscall, _IO_URING_SETUP, 0, None),
        ),
        Promise.PROCESSES: (
            _fork,
            partial(os.execv, "/nowhere", ["nowhere"]),
            partial(_libc, "unshare", 0),
            partial(_libc, "unshare", _CLONE_NEWUSER),
            partial(_libc, "setns", -1, 0),
        ),
        Promise.REACH: (
            partial(os.kill, parent, 0),
            partial(_syscall, _PIDFD_OPEN, parent, 0),
            partial(os.setpriority, _NO_KIND, parent, 0),
            lambda: os.sched_setaffinity(parent, os.sched_getaffinity(parent)),
            partial(_syscall, _IOPRIO_SET.get(os.uname().machine, -1), _NO_KIND, parent, 0),
            partial(_own_pipe, parent),
            partial(_libc, "prctl", _SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0),
            partial(_libc, "shmat", _NOBODY, None, 0),
            partial(_libc, "shmget", 0, 4096, 0),
            partial(_libc, "msgsnd", _NOBODY, b"\0" * 16, 8, 0o4000),
            partial(_libc, "msgget", 0, 0),
            partial(_libc, "semget", 0, 1, 0),
        ),
        Promise.WRITES: (
            partial(_write, writable.parent),
            partial(os.truncate, "/nowhere", 0),
            partial(os.open, "/nowhere", os.O_RDONLY | os.O_TRUNC),
            partial(os.chmod, "/nowhere", 0o600),
            partial(os.chown, "/nowhere", -1, -1),
            partial(os.utime, "/nowhere"),
            partial(_libc, "setxattr", b"/nowhere", b"user.x", b"", 0, 0),
            partial(_syscall, _SETXATTRAT, -100, b"/nowhere", 0, b"user.x", None, 0),
            partial(_set_flags, writable),
        ),
        Promise.READS: (
            partial(_read, Path("/etc/passwd")),
            *(partial(_read, path) for path in hidden),
        ),
        Promise.REMOVAL: (
            partial(_make_closed_folder, writable),
            partial(os.chmod, writable, 0o700),
            partial(_set_flags, writable),
        ),
    }


def _all_refused(tries: Sequence[Attempt]) -> bool:
    return all(_refused(attempt) for attempt in tries)


def _refused(attempt: Attempt) -> bool:
    """Return whether an attempt is forbidden; one that fails otherwise proves nothing."""
    try:
        attempt()
    except PermissionError:
        return True
    except (OSError, AttributeError):  # the platform may lack the call altogether
        return False
    return False


def _allocates(size: int) -> bool:
    try:
        mmap.mmap(-1, size).close()
    except OSError:
        return False
    return True


def _libc(name: str, *arguments: object) -> None:
    function = getattr(ctypes.CDLL(None, use_errno=True), name)
    function.restype = ctypes.c_int  # -1 on failure, which the low half of a pointer shows, too
    if function(*arguments) == -1:
        raise OSError(ctypes.get_errno(), name)


def _syscall(number: int, *arguments: object) -> None:
    _libc("syscall", ctypes.c_long(number), *arguments)


def _address(name: bytes) -> bytes:
    return socket.AF_UNIX.to_bytes(2, "little") + name


def _connect(name: bytes) -> None:
    # Standard input is no socket: without a filter, this fails as such.
    _libc("connect", 0, _address(name), 2 + len(name))


def _send(name: bytes) -> None:
    _libc("sendto", 0, b"x", ctypes.c_size_t(1), 0, _address(name), 2 + len(name))


def _fork() -> None:
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        os._exit(0)


def _memfd() -> None:
    os.close(os.memfd_create("trial"))


def _grow_pipe() -> None:
    _on_pipe(1031, 1 << 20)  # F_SETPIPE_SZ


def _own_pipe(process: int) -> None:
    _on_pipe(8, process)  # F_SETOWN: signals about the pipe go to this process


def _on_pipe(command: int, argument: int) -> None:
    import fcntl

    ends = os.pipe()
    try:
        fcntl.fcntl(ends[0], command, argument)
    finally:
        for end in ends:
            os.close(end)


def _write(folder: Path) -> None:
    path = folder / f"faithbench-probe-{os.getpid()}"
    path.write_bytes(b"")
    path.unlink()


def _read(path: Path) -> None:
    with path.open("rb") as file:
        file.read(1)


def _set_flags(folder: Path) -> None:
    """Set the flags of a folder, immutable among them, to none."""
    import fcntl

    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.ioctl(descriptor, _FS_IOC_SETFLAGS, bytes(8))
    finally:
        os.close(descriptor)


def _make_closed_folder(folder: Path) -> None:
    """Make a folder that its owner may write to and not list, so that it cannot be emptied."""
    closed = folder / "closed"
    try:
        closed.mkdir(mode=0o300)
    finally:
        with suppress(OSError):
            closed.rmdir()
