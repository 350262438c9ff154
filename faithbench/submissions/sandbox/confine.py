"""A process confines itself before it runs a stranger's code, and tries what still works.

Nothing here loads torch, nor anything else that starts a thread: restrictions hold for the
thread that asks for them and for those it starts later.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import socket
import struct
import sys
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from pathlib import Path

from faithbench.submissions.sandbox.landlock import restrict_files
from faithbench.submissions.sandbox.seccomp import refuse_calls

MB = 1 << 20
_PACKAGE = Path(__file__).parents[2]
# Not for foreign code: labels and rationales. `data` itself is let in file by file.
_DATA = ("bundled", "data", "_tasks")
_DIE_WITH_PARENT, _CAPABILITIES = 1, 0x20080522


@dataclass(frozen=True)
class Limits:
    """What a stranger's code may use: time, memory, bytes to send, to print and per file."""

    seconds: int = 600
    memory_mb: int = 4096
    sent_mb: int = 64
    printed_mb: int = 1
    file_mb: int = 64


@dataclass(frozen=True)
class Enforced:
    """What was tried and is refused here, and what is not, in words."""

    holds: tuple[str, ...]
    missing: tuple[str, ...]


def confine(limits: Limits, readable: Iterable[Path], writable: Path) -> Enforced:
    """Confine this process for good, and say what of it holds.

    It may read the interpreter, this package without its data, and what is `readable`.
    """
    if sys.platform == "win32":
        raise OSError("code of others runs on Linux and macOS only")
    memory = _limit_resources(limits)
    folders = [_PACKAGE, _PACKAGE / "data"]
    code = [path for folder in folders for path in folder.iterdir() if path.name not in _DATA]
    if sys.platform == "linux":
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        _drop_capabilities(libc)
    seen = [*readable, *code, *(Path(path) for path in _SYSTEM)]
    restrict_files(seen, [writable, Path("/dev/null")], folders)
    refuse_calls()
    trials = {
        f"memory {limits.memory_mb / 1024:g} GB": memory,
        "no network": _refused(_connect),
        "no other processes": _refused(_fork),
        "writes only in a temporary folder": _refused(lambda: _write(writable.parent)),
        "reads only code, model and its own folder": _refused(lambda: _read("/etc/passwd")),
    }
    return Enforced(
        (f"{limits.seconds} s", *(said for said, held in trials.items() if held)),
        tuple(said for said, held in trials.items() if not held),
    )


# Where an interpreter and its libraries look; what is not there is passed over.
_SYSTEM = (
    sys.prefix, sys.base_prefix, "/usr", "/lib", "/lib64", "/System", "/Library",
    "/etc/ld.so.cache", "/etc/localtime", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
    "/proc/stat", "/proc/sys/vm/overcommit_memory", "/sys/devices/system", "/sys/fs/cgroup",
    "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
)  # fmt: skip


def _limit_resources(limits: Limits) -> bool:
    """Set the limits that every process has; True if that of memory was taken."""
    import resource

    memory = limits.memory_mb * MB
    cores = os.cpu_count() or 1
    wanted = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_mb * MB,
        # A backstop only: the parent looks at the clock.
        resource.RLIMIT_CPU: limits.seconds * cores,
        resource.RLIMIT_AS: memory,
    }
    for kind, most in wanted.items():
        try:
            resource.setrlimit(kind, (most, most))
        except (OSError, ValueError):  # macOS takes no limit on memory
            continue
    return resource.getrlimit(resource.RLIMIT_AS)[1] == memory


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up what root may do beyond its own files; for others this changes nothing."""
    header, none = struct.pack("Ii", _CAPABILITIES, 0), bytes(24)
    libc.capset(ctypes.create_string_buffer(header), ctypes.create_string_buffer(none))


def _refused(attempt: Callable[[], None]) -> bool:
    try:
        attempt()
    except PermissionError:
        return True
    except OSError:
        return False
    return False


def _connect() -> None:
    socket.socket(socket.AF_INET, socket.SOCK_STREAM).close()


def _fork() -> None:
    if child := os.fork():
        os.waitpid(child, 0)
    else:
        os._exit(0)


def _write(folder: Path) -> None:
    path = folder / f"faithbench-probe-{os.getpid()}"
    path.write_bytes(b"")
    path.unlink()


def _read(path: str) -> None:
    Path(path).read_bytes()


if __name__ == "__main__":  # says what holds here, and ends
    _found = confine(Limits(), [], Path.cwd())
    os.write(int(sys.argv[1]), json.dumps(asdict(_found)).encode() + b"\n")
