"""System calls that a stranger's code is refused, by a filter that the Linux kernel enforces.

The filter is inherited and can never be taken off again. It knows x86-64 and 64-bit ARM.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_NONE = -1  # a call that an architecture does not have

# Name: numbers on x86-64 and on 64-bit ARM.
_REFUSED = {
    # no network, and no other way to talk to somebody
    "socket": (41, 198), "io_uring_setup": (425, 425),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "memfd_create": (319, 279),
    # no other processes, no programs
    "fork": (57, _NONE), "vfork": (58, _NONE), "execve": (59, 221), "execveat": (322, 281),
    # no reach into others
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    # no other view of the machine, nor of the kernel
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "move_mount": (429, 429),
    "fsopen": (430, 430), "open_tree": (428, 428), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219),
    # no change of what a file is allowed, owned by or dated: Landlock does not look at these
    "chmod": (90, _NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, _NONE), "fchown": (93, 55), "lchown": (94, _NONE), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "utime": (132, _NONE), "utimes": (235, _NONE), "futimesat": (261, _NONE),
    "utimensat": (280, 88),
    # no way back to more
    "setrlimit": (160, 164),
}  # fmt: skip
_CLONE, _CLONE3, _PRLIMIT = (56, 220), (435, 435), (302, 261)
_KILL, _TGKILL = (62, 129), (234, 131)

_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000
_REFUSE = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_PERMIT = (_RETURN, 0, 0, _ALLOW)
_THREAD = 0x00010000
_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2

Instruction = tuple[int, int, int, int]


def refuse_calls() -> bool:
    """Install the filter on the calling thread; False where the platform has none."""
    known = _ARCHITECTURES.get(platform.machine())
    if platform.system() != "Linux" or known is None or struct.calcsize("P") != 8:
        return False
    program = _program(*known, os.getpid())
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("HBBI", *one) for one in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: how many instructions, and where they are.
    pointer = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    if libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    return not libc.prctl(_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(pointer), 0, 0)


def _program(audit: int, column: int, own: int) -> list[Instruction]:
    """Write the filter: loads and jumps, first match decides, what is not named is allowed."""
    lines: list[Instruction] = [
        (_LOAD, 0, 0, 4),  # the architecture of the call
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, 0),  # the number of the call
        (_AT_LEAST, 0, 1, 0x40000000),  # x86's second table of calls
        _REFUSE,
    ]
    for numbers in _REFUSED.values():
        lines += _when(numbers[column], [_REFUSE])
    # The C library then falls back to clone, whose flags a filter can read.
    lines += _when(_CLONE3[column], [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)])
    lines += _when(_CLONE[column], [_argument(0), (_HAS, 0, 1, _THREAD), _PERMIT, _REFUSE])
    for numbers in (_KILL, _TGKILL):  # itself only: this is how abort() ends a process
        lines += _when(numbers[column], [_argument(0), (_EQUAL, 0, 1, own), _PERMIT, _REFUSE])
    asks_only = [
        _argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), (_EQUAL, 0, 1, 0),
        _PERMIT, _REFUSE,
    ]  # fmt: skip
    lines += _when(_PRLIMIT[column], asks_only)
    return [*lines, _PERMIT]


def _when(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run a body, which returns, for one call; the call's number stays loaded for the others."""
    return [] if number == _NONE else [(_EQUAL, 0, len(body), number), *body]


def _argument(place: int, *, high: bool = False) -> Instruction:
    """Load half of an argument: both architectures put the low half first."""
    return (_LOAD, 0, 0, 16 + 8 * place + 4 * high)
