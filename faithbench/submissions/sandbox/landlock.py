"""Files that untrusted code may read or write, as the Linux kernel enforces it: Landlock.

See landlock(7). A restriction is inherited by threads and children, and can never be lifted again.
Rules only ever allow: below a folder that may be read, nothing can be taken out again.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

# The C library has no functions for these three calls; x86-64 and ARM number them alike.
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_ASK_VERSION = 1  # flag of the first call: return the version instead of a ruleset
_PATH_BENEATH = 1  # the type of a rule on a file, or on a folder with all below it
_SET_NO_NEW_PRIVILEGES = 38  # of prctl(2)

# Rights on files are bits: 0 runs a program, 4 to 12 remove and make entries of folders.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_FOLDER, _TRUNCATE = (1 << bit for bit in (0, 1, 2, 3, 14))
# All rights that a version knows: 13 in version 1, and one more, to rename or link between folders
# (2) and to truncate (3). A right that a kernel does not know makes it refuse the ruleset. The one
# of version 5, ioctl on devices, is left alone: no device but /dev/null and its like is readable.
_KNOWN_RIGHTS = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_RIGHTS_ON_FILES = _READ_FILE | _WRITE_FILE | _TRUNCATE
_TCP = 0b11  # to bind and to connect, from version 4 on
_SCOPES = 0b11  # abstract Unix sockets of, and signals to, outsiders: from version 6 on


def landlock_version() -> int:
    """Return the version of Landlock that the kernel speaks, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def restrict_files(
    readable: Iterable[Path], writable: Iterable[Path], listed: Iterable[Path] = ()
) -> bool:
    """Let the calling thread read and write below these paths only; return False if it cannot.

    Folders that are `listed` show the names of the entries below them, but no content. From
    version 4 on TCP is refused too, from version 6 on signals to outsiders.
    """
    version = landlock_version()
    if not version:
        return False
    # Running programs is left to seccomp, which refuses it everywhere.
    handled = _KNOWN_RIGHTS[min(version, 3)] & ~_EXECUTE
    ruleset = _create_ruleset(version, handled)
    if ruleset < 0:
        return False
    try:
        for path in readable:
            _allow(ruleset, path, _READ_FILE | _READ_FOLDER)
        for path in listed:
            _allow(ruleset, path, _READ_FOLDER)
        for path in writable:
            _allow(ruleset, path, handled)
        libc = ctypes.CDLL(None, use_errno=True)
        # The kernel restricts an unprivileged process only after this promise.
        if libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            return False
        return _call(_RESTRICT_SELF, ctypes.c_int(ruleset), ctypes.c_uint32(0)) == 0
    finally:
        os.close(ruleset)


def _create_ruleset(version: int, handled: int) -> int:
    """Return a descriptor of a new ruleset, which refuses all that it handles; -1 on failure."""
    # struct landlock_ruleset_attr grew by a field with versions 4 and 6. An older kernel refuses
    # a longer one unless the rest is zero, so each gets what it knows.
    fields = [handled, _TCP, _SCOPES][: 1 + (version >= 4) + (version >= 6)]
    attributes = struct.pack(f"{len(fields)}Q", *fields)
    return _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))


def _allow(ruleset: int, path: Path, rights: int) -> None:
    """Add a rule; a path that does not exist needs none."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        # A rule on a file that speaks of folders is refused as a whole.
        granted = rights if path.is_dir() else rights & _RIGHTS_ON_FILES
        rule = struct.pack("=Qi", granted, descriptor)  # "=": the kernel's struct has no padding
        if _call(
            _ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0)
        ):
            raise OSError(ctypes.get_errno(), f"Landlock takes no rule for {path}")
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return int(libc.syscall(ctypes.c_long(number), *arguments))
