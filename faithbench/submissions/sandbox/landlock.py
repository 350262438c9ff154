"""Files that a stranger's code may read or write, as the Linux kernel enforces it: Landlock.

See landlock(7). A restriction is inherited and can never be lifted again.
"""

from __future__ import annotations

import ctypes
import os
import struct
import sys
from collections.abc import Iterable
from pathlib import Path

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446
_SET_NO_NEW_PRIVILEGES = 38
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_WRITE_FILE, _TRUNCATE = 1 << 1, 1 << 14
_EVERYTHING = {1: (1 << 13) - 1, 2: (1 << 14) - 1, 3: (1 << 15) - 1}
_ON_FILES = _READ_FILE | _WRITE_FILE | _TRUNCATE
_TCP, _SCOPES = 0b11, 0b11


def landlock_version() -> int:
    """Return the version of Landlock that the kernel speaks, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(1)))


def restrict_files(
    readable: Iterable[Path], writable: Iterable[Path], listed: Iterable[Path] = ()
) -> bool:
    """Let the calling thread read and write below these paths alone; False if it cannot be.

    Folders that are `listed` show the names of what is in them, and no more. From version 4 on
    it also refuses TCP, from version 6 on signals to outsiders.
    """
    version = landlock_version()
    if not version:
        return False
    handled = _EVERYTHING[min(version, 3)] & ~1  # running programs is refused elsewhere
    parts = [handled, _TCP, _SCOPES][: 1 + (version >= 4) + (version >= 6)]
    attributes = struct.pack(f"{len(parts)}Q", *parts)
    rules = _call(_CREATE, attributes, ctypes.c_size_t(len(attributes)), ctypes.c_uint32(0))
    if rules < 0:
        return False
    try:
        for path in readable:
            _allow(rules, path, _READ_FILE | _READ_FOLDER)
        for path in listed:
            _allow(rules, path, _READ_FOLDER)
        for path in writable:
            _allow(rules, path, handled)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
            return False
        return _call(_RESTRICT, ctypes.c_int(rules), ctypes.c_uint32(0)) == 0
    finally:
        os.close(rules)


def _allow(rules: int, path: Path, access: int) -> None:
    """Add a rule; a path that is not there needs none."""
    try:
        place = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        own = access if path.is_dir() else access & _ON_FILES
        rule = struct.pack("=Qi", own, place)
        if _call(_ADD_RULE, ctypes.c_int(rules), ctypes.c_int(1), rule, ctypes.c_uint32(0)):
            raise OSError(ctypes.get_errno(), f"Landlock takes no rule for {path}")
    finally:
        os.close(place)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    return int(libc.syscall(ctypes.c_long(number), *arguments))
