"""A process confines itself before it runs untrusted code, and tries what still works.

Nothing here loads torch, nor anything else that starts a thread: restrictions hold for the
thread that asks for them and for those it starts later.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
import sysconfig
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from faithbench.submissions.sandbox.landlock import restrict_files
from faithbench.submissions.sandbox.messages import Confined, Promise
from faithbench.submissions.sandbox.seccomp import allow_calls
from faithbench.submissions.sandbox.trials import kept_promises

MB = 1 << 20
_PACKAGE = Path(__file__).parents[2]
# Labels and rationales, and in a wheel the task files and recipes: an explainer must not see what
# it is measured against. A bundled model lies there too; its files are passed in one by one.
_HIDDEN = (Path("data", "bundled"), Path("_tasks"), Path("_recipes"))
# Libraries of the system, and what they ask about the machine; what does not exist is skipped.
_SYSTEM = (
    "/usr/lib", "/usr/lib64", "/usr/libexec", "/usr/local/lib", "/usr/share/zoneinfo", "/lib",
    "/lib64", "/System", "/Library", "/etc/ld.so.cache", "/etc/localtime", "/proc/self",
    "/proc/cpuinfo", "/proc/meminfo", "/proc/stat", "/proc/sys/vm/overcommit_memory",
    "/sys/devices/system", "/sys/fs/cgroup", "/dev/null", "/dev/zero", "/dev/urandom",
    "/dev/random",
)  # fmt: skip
_PACKAGES = ("site-packages", "dist-packages")
_DIE_WITH_PARENT = 1  # PR_SET_PDEATHSIG of prctl(2): no orphan outlives a killed faithbench
_CAPABILITY_VERSION = 0x20080522  # _LINUX_CAPABILITY_VERSION_3 of capset(2): 64 bits of each


@dataclass(frozen=True)
class Limits:
    """What untrusted code may use: time, memory, MB to send, to print and to write per file."""

    seconds: int = 600
    memory_mb: int = 4096
    sent_mb: int = 64
    printed_mb: int = 1
    file_mb: int = 64


def confine(limits: Limits, readable: Iterable[Path], writable: Path) -> Confined:
    """Confine this process for good, and return what holds and what does not.

    It may read the interpreter, this package without its data, and what is `readable`.
    """
    if sys.platform == "win32":
        raise OSError("untrusted code runs on Linux and macOS only")
    memory = _limit_resources(limits)
    if sys.platform == "linux":
        # All that follows holds for this thread and for those it starts: others would stay free.
        if (threads := len(list(Path("/proc/self/task").iterdir()))) > 1:
            raise OSError(f"{threads} threads run already; confine a process before it loads numpy")
        libc = ctypes.CDLL(None, use_errno=True)
        libc.prctl(_DIE_WITH_PARENT, signal.SIGKILL, 0, 0, 0)
        _drop_capabilities(libc)
    # Listed before it is hidden, for the trials.
    hidden = hidden_paths()
    labelled = sorted(file for path in hidden for file in path.glob("*/*.jsonl*"))
    code, listed = paths_without(code_paths(), hidden)
    restrict_files([*readable, *code], [writable, Path("/dev/null")], listed)
    allow_calls()
    kept = kept_promises(writable, limits.memory_mb * MB, labelled, memory_limited=memory)
    words = {Promise.MEMORY: f"memory {limits.memory_mb / 1024:g} GB"}
    return Confined(
        holds=(f"{limits.seconds} s", *(words.get(p, p) for p, held in kept.items() if held)),
        missing=tuple(words.get(p, p) for p, held in kept.items() if not held),
    )


def hidden_paths() -> list[Path]:
    """Return what no explainer may read of this package, and of any copy that is installed."""
    # Code of a checkout can run where another faithbench is installed, with the same labels.
    copies = {_PACKAGE, *(path / _PACKAGE.name for path in _package_folders())}
    return [copy / hidden for copy in sorted(copies) for hidden in _HIDDEN]


def code_paths() -> list[Path]:
    """Return where the interpreter, its packages, this package and the system's libraries lie.

    Not all of sys.prefix, nor all of sys.path: a checkout is in it with all its data and results.
    """
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib")}
    # A shared library of the interpreter itself, of conda's say, lies next to the standard one.
    libraries = {str(Path(sys.base_prefix) / "lib")}
    return [_PACKAGE, *map(Path, [*sorted(standard | libraries), *_SYSTEM]), *_package_folders()]


def _package_folders() -> list[Path]:
    return sorted({Path(path) for path in sys.path if Path(path).name in _PACKAGES})


def paths_without(paths: Iterable[Path], hidden: Iterable[Path]) -> tuple[list[Path], list[Path]]:
    """Return paths that cover the given ones except what is hidden, and folders to be listed.

    Landlock cannot take out what lies below a readable folder. So a folder that something hidden
    lies in (site-packages, if faithbench is installed there) is replaced by its entries; imports
    still list it. Links are followed first: `lib64` is often one to `lib`.
    """
    secrets = [Path(os.path.realpath(path)) for path in hidden]
    pending = [Path(os.path.realpath(path)) for path in paths]
    readable, listed = set[Path](), set[Path]()
    while pending:
        path = pending.pop()
        if path in listed or any(path.is_relative_to(secret) for secret in secrets):
            continue
        if any(secret.is_relative_to(path) for secret in secrets):
            listed.add(path)
            pending += [Path(os.path.realpath(entry)) for entry in path.iterdir()]
        else:
            readable.add(path)
    return sorted(readable), sorted(listed)


def _limit_resources(limits: Limits) -> bool:
    """Set the limits that every process has; return whether that of memory was taken."""
    import resource

    memory = limits.memory_mb * MB
    cores = os.cpu_count() or 1
    most = {
        # A crash would else write the whole memory to the disk.
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: limits.file_mb * MB,
        # Counts the time of all threads. A backstop only: the parent watches the clock.
        resource.RLIMIT_CPU: limits.seconds * cores,
        # Of address space, since Linux enforces none of resident memory (RLIMIT_RSS).
        resource.RLIMIT_AS: memory,
        # What a pipe holds, 64 KB, counts as nobody's memory: so there are few of them.
        resource.RLIMIT_NOFILE: 256,
    }
    for limit, value in most.items():
        try:
            # Hard and soft alike: a hard limit cannot be raised again.
            resource.setrlimit(limit, (value, value))
        except (OSError, ValueError):  # macOS takes no limit on memory
            continue
    return resource.getrlimit(resource.RLIMIT_AS)[1] == memory


def _drop_capabilities(libc: ctypes.CDLL) -> None:
    """Give up what root may do beyond its own files; for other users this changes nothing."""
    # The header names the version and this process (0). The data are two times three 32-bit
    # sets (effective, permitted, inheritable), all empty.
    header, none = struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24)
    libc.capset(ctypes.create_string_buffer(header), ctypes.create_string_buffer(none))


if __name__ == "__main__":  # `faithbench doctor` asks what holds on this machine
    _confined = confine(Limits(), [], Path.cwd())
    os.write(int(sys.argv[1]), _confined.model_dump_json().encode() + b"\n")
