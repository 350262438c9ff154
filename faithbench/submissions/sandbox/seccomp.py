"""System calls that untrusted code is refused, by a filter that the Linux kernel enforces.

The filter is inherited by threads and children, and a process can never remove it again. It knows
x86-64 and 64-bit ARM; see seccomp(2). It names what is refused, since an interpreter with torch
uses too many calls to list what is allowed; `confine` then tries out what holds.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

# What the kernel calls an architecture (AUDIT_ARCH_*), and its column in the table below.
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_NONE = -1  # a call that an architecture does not have

# Name: numbers on x86-64 and on 64-bit ARM, from the kernel's unistd.h. Numbers never change, and
# from 424 on they are the same on both.
_REFUSED = {
    # No network. io_uring is another way to it: its operations pass no filter.
    "socket": (41, 198), "io_uring_setup": (425, 425),
    # No memory or queues shared with other processes; the memory limit does not count them.
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (240, 180),
    "memfd_create": (319, 279),
    # No other processes, no programs. ARM has neither fork nor vfork: clone does both, see below.
    "fork": (57, _NONE), "vfork": (58, _NONE), "execve": (59, 221), "execveat": (322, 281),
    # No reading, writing or signalling of other processes; kill and tgkill follow below.
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "tkill": (200, 130), "rt_sigqueueinfo": (129, 138), "rt_tgsigqueueinfo": (297, 240),
    "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424), "pidfd_getfd": (438, 438),
    # No other view of the machine, and fewer ways to attack the kernel.
    "unshare": (272, 97), "setns": (308, 268), "mount": (165, 40), "move_mount": (429, 429),
    "fsopen": (430, 430), "open_tree": (428, 428), "bpf": (321, 280),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "add_key": (248, 217),
    "request_key": (249, 218), "keyctl": (250, 219),
    # No change of a file's mode, owner, attributes or dates: Landlock does not check these.
    "chmod": (90, _NONE), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, _NONE), "fchown": (93, 55), "lchown": (94, _NONE), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7),
    "removexattr": (197, 14), "lremovexattr": (198, 15), "fremovexattr": (199, 16),
    "utime": (132, _NONE), "utimes": (235, _NONE), "futimesat": (261, _NONE),
    "utimensat": (280, 88),
    # No change of resource limits; prlimit follows below.
    "setrlimit": (160, 164),
}  # fmt: skip
_CLONE, _CLONE3, _PRLIMIT = (56, 220), (435, 435), (302, 261)
_KILL, _TGKILL = (62, 129), (234, 131)

# Opcodes of the filter's machine (linux/bpf_common.h): load 32 bits at an offset into the
# accumulator; compare it with a constant (equal, at least, has a bit); return.
_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
# What a filter may return (linux/seccomp.h); the low 16 bits of _ERRNO are the error.
_ALLOW, _KILL_PROCESS, _ERRNO = 0x7FFF0000, 0x80000000, 0x00050000

Instruction = tuple[int, int, int, int]
"""Opcode, instructions to skip if a comparison holds, to skip if it does not, constant."""

_REFUSE: Instruction = (_RETURN, 0, 0, _ERRNO | errno.EPERM)
_PERMIT: Instruction = (_RETURN, 0, 0, _ALLOW)

# Offsets in struct seccomp_data, which a filter reads: number, architecture, (instruction
# pointer,) and six arguments of 8 bytes each.
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
# Calls from here on are those of x32, which shares x86-64's architecture but not its numbers.
_X32 = 0x40000000
_CLONE_THREAD = 0x00010000  # the flag by which clone makes a thread, not a process

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2  # constants of prctl(2)


def refuse_calls() -> bool:
    """Install the filter on the calling thread; return False where the platform has none."""
    known = _ARCHITECTURES.get(platform.machine())
    if platform.system() != "Linux" or known is None or struct.calcsize("P") != 8:
        return False
    program = _program(*known, os.getpid())
    libc = ctypes.CDLL(None, use_errno=True)
    code = b"".join(struct.pack("HBBI", *instruction) for instruction in program)
    buffer = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: the number of instructions, 6 bytes of padding, and their address.
    pointer = struct.pack("HxxxxxxP", len(program), ctypes.addressof(buffer))
    # The kernel takes a filter from an unprivileged process only after this promise.
    if libc.prctl(_SET_NO_NEW_PRIVILEGES, 1, 0, 0, 0):
        return False
    return not libc.prctl(_SET_SECCOMP, _FILTER, ctypes.create_string_buffer(pointer), 0, 0)


def _program(audit: int, column: int, own_pid: int) -> list[Instruction]:
    """Return the filter of an architecture; a call that it does not name is allowed."""
    program: list[Instruction] = [
        # Numbers mean other calls on other architectures (32-bit x86 on x86-64, say), so code
        # that switches to one is ended: equal skips the return.
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, audit),
        (_RETURN, 0, 0, _KILL_PROCESS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        _REFUSE,
    ]
    for numbers in _REFUSED.values():
        program += _on_call(numbers[column], [_REFUSE])
    # clone3 has its flags in memory, where no filter can look. Told that the kernel does not
    # know the call, the C library falls back to clone, which has them in its first argument.
    program += _on_call(_CLONE3[column], [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)])
    # Each comparison below goes on if it holds, and else skips to the last line, which refuses.
    threads_only = [_argument(0), (_HAS, 0, 1, _CLONE_THREAD), _PERMIT, _REFUSE]
    program += _on_call(_CLONE[column], threads_only)
    # abort() ends a process by a signal to itself, and a crash should be told as one.
    itself_only = [_argument(0), (_EQUAL, 0, 1, own_pid), _PERMIT, _REFUSE]
    for numbers in (_KILL, _TGKILL):
        program += _on_call(numbers[column], itself_only)
    # prlimit sets limits only if its third argument, a pointer, is not null: both halves count.
    reading_only = [
        _argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), (_EQUAL, 0, 1, 0),
        _PERMIT, _REFUSE,
    ]  # fmt: skip
    program += _on_call(_PRLIMIT[column], reading_only)
    return [*program, _PERMIT]


def _on_call(number: int, body: list[Instruction]) -> list[Instruction]:
    """Run a body for one call, and skip it for all others.

    A body ends by a return. So it may load an argument over the call's number: whatever follows
    runs only where the body was skipped, and the number is still loaded.
    """
    return [] if number == _NONE else [(_EQUAL, 0, len(body), number), *body]


def _argument(index: int, *, high: bool = False) -> Instruction:
    """Load half of an argument: the machine has 32 bits, and both architectures are little-endian.

    The low half is enough where the kernel itself reads no more: flags of clone, process ids.
    """
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index + 4 * high)
