"""System calls that untrusted code may make, by a filter that the Linux kernel enforces.

The filter is inherited by threads and children, and a process can never remove it again. It knows
x86-64 and 64-bit ARM; see seccomp(2). It names what is allowed: calls that strace showed
in a part of the conformance suite, and others that the C library and Python use for the same ends.
All else is refused, calls of future kernels included; `trials` then tries out what holds.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct

# What the kernel calls an architecture (AUDIT_ARCH_*), and its column in the tables below.
_ARCHITECTURES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}
_NONE = -1  # a call that an architecture does not have

# Name: numbers on x86-64 and on 64-bit ARM, from the kernel's unistd.h. Numbers never change, and
# from 424 on they are the same on both. The filter goes through them in this order, so those that
# torch makes most often are first.
_ALLOWED = {
    "futex": (202, 98), "read": (0, 63), "write": (1, 64), "close": (3, 57), "mmap": (9, 222),
    "munmap": (11, 215), "mprotect": (10, 226), "mremap": (25, 216), "madvise": (28, 233),
    "brk": (12, 214), "lseek": (8, 62), "newfstatat": (262, 79),
    "fstat": (5, 80), "sched_yield": (24, 124),
    # Files by name and by descriptor: Landlock decides which. There is no truncate by name, no
    # link, no node, no mode, owner, attribute or date: Landlock does not check all of these.
    "stat": (4, _NONE), "lstat": (6, _NONE), "statx": (332, 291),
    "access": (21, _NONE), "faccessat": (269, 48), "faccessat2": (439, 439),
    "readlink": (89, _NONE), "readlinkat": (267, 78), "getdents64": (217, 61),
    "getcwd": (79, 17), "chdir": (80, 49), "fchdir": (81, 50), "statfs": (137, 43),
    "fstatfs": (138, 44), "unlink": (87, _NONE), "unlinkat": (263, 35), "rmdir": (84, _NONE),
    "rename": (82, _NONE), "renameat": (264, 38), "renameat2": (316, 276),
    "pread64": (17, 67), "pwrite64": (18, 68), "readv": (19, 65), "writev": (20, 66),
    "ftruncate": (77, 46), "fsync": (74, 82), "fdatasync": (75, 83), "fadvise64": (221, 223),
    "fallocate": (285, 47), "flock": (73, 32), "sendfile": (40, 71), "copy_file_range": (326, 285),
    "msync": (26, 227), "mincore": (27, 232),
    # Pipes and waiting.
    "dup": (32, 23), "dup2": (33, _NONE), "dup3": (292, 24), "pipe": (22, _NONE),
    "pipe2": (293, 59), "close_range": (436, 436), "poll": (7, _NONE), "ppoll": (271, 73),
    "select": (23, _NONE), "pselect6": (270, 72), "epoll_create1": (291, 20),
    "epoll_ctl": (233, 21), "epoll_wait": (232, _NONE), "epoll_pwait": (281, 22),
    "eventfd2": (290, 19),
    # Threads and their memory; mbind and get_mempolicy place a thread's own pages.
    "set_tid_address": (218, 96), "set_robust_list": (273, 99), "rseq": (334, 293),
    "membarrier": (324, 283), "arch_prctl": (158, _NONE), "sched_getaffinity": (204, 123),
    "sched_getscheduler": (145, 120), "sched_getparam": (143, 121),
    "sched_get_priority_min": (147, 126), "sched_get_priority_max": (146, 125),
    "getcpu": (309, 168), "mbind": (237, 235), "get_mempolicy": (239, 236),
    # Handlers of its own signals.
    "rt_sigaction": (13, 134), "rt_sigprocmask": (14, 135), "rt_sigreturn": (15, 139),
    "sigaltstack": (131, 132), "restart_syscall": (219, 128),
    # Clocks, and facts about the process and the machine.
    "clock_gettime": (228, 113), "clock_getres": (229, 114), "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101), "gettimeofday": (96, 169), "time": (201, _NONE),
    "getpid": (39, 172), "getppid": (110, 173), "gettid": (186, 178), "getuid": (102, 174),
    "geteuid": (107, 175), "getgid": (104, 176), "getegid": (108, 177), "getpgrp": (111, _NONE),
    "getpgid": (121, 155), "getsid": (124, 156), "getgroups": (115, 158), "uname": (63, 160),
    "sysinfo": (99, 179), "getrusage": (98, 165), "times": (100, 153), "getrlimit": (97, 163),
    "getrandom": (318, 278), "exit": (60, 93), "exit_group": (231, 94),
}  # fmt: skip

# Calls that depend on an argument: which argument, and the values of it that are allowed.
_OF_VALUES = {
    # Duplicates, flags and sizes. Not F_SETOWN, F_SETSIG and F_SETLEASE, which send signals, nor
    # F_SETPIPE_SZ: the memory limit does not count what a pipe holds.
    "fcntl": ((72, 25), 1, (0, 1, 2, 3, 4, 1030, 1032)),
    # Terminals (TCGETS, TCGETS2, TIOCGWINSZ), descriptors (FIOCLEX, FIONCLEX, FIONBIO, FIONREAD);
    # not FS_IOC_SETFLAGS, by which a file could not be removed any more.
    "ioctl": ((16, 29), 1, (0x5401, 0x802C542A, 0x5413, 0x5451, 0x5450, 0x5421, 0x541B)),
    # Names of threads and of memory (PR_SET_NAME, PR_GET_NAME, PR_SET_VMA); not PR_SET_PDEATHSIG,
    # by which a worker could outlive its parent.
    "prctl": ((157, 167), 0, (15, 16, 0x53564D41)),
    # OpenMP pins its own thread, which is process 0 here; any other process is left alone.
    "sched_setaffinity": ((203, 122), 0, (0,)),
}  # fmt: skip
_CLONE, _CLONE3, _PRLIMIT = (56, 220), (435, 435), (302, 261)
_KILL, _TGKILL = (62, 129), (234, 131)
# With the position of the mode, and of the flags.
_MKDIR, _MKDIRAT = ((83, _NONE), 1), ((258, 34), 2)
_OPEN, _OPENAT = ((2, _NONE), 1), ((257, 56), 2)

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
# The flag by which clone makes a thread, not a process; and those that make new namespaces.
_CLONE_THREAD, _CLONE_NAMESPACES = 0x00010000, 0x7E020000
# Flags of open: to write, to read and write, to empty the file.
_O_WRONLY, _O_RDWR, _O_TRUNC = 0o1, 0o2, 0o1000

_SET_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2  # constants of prctl(2)


def allow_calls() -> bool:
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
    """Return the filter of an architecture; a call that it does not name is refused."""
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
    for numbers in _ALLOWED.values():
        program += _on_call(numbers[column], [_PERMIT])
    for numbers, position, values in _OF_VALUES.values():
        program += _on_call(numbers[column], _one_of(position, values))
    # clone3 has its flags in memory, where no filter can look. Told that the kernel does not
    # know the call, the C library falls back to clone, which has them in its first argument.
    program += _on_call(_CLONE3[column], [(_RETURN, 0, 0, _ERRNO | errno.ENOSYS)])
    # Each comparison below goes on if it holds, and else skips to the last line, which refuses.
    threads_only = [
        _argument(0), (_HAS, 0, 2, _CLONE_THREAD), (_HAS, 1, 0, _CLONE_NAMESPACES),
        _PERMIT, _REFUSE,
    ]  # fmt: skip
    program += _on_call(_CLONE[column], threads_only)
    # abort() ends a process by a signal to itself, and a crash should be told as one.
    for numbers in (_KILL, _TGKILL):
        program += _on_call(numbers[column], _one_of(0, (own_pid,)))
    # prlimit sets limits only if its third argument, a pointer, is not null: both halves count.
    reading_only = [
        _argument(2), (_EQUAL, 0, 3, 0), _argument(2, high=True), (_EQUAL, 0, 1, 0),
        _PERMIT, _REFUSE,
    ]  # fmt: skip
    program += _on_call(_PRLIMIT[column], reading_only)
    # Its owner must be able to list, enter and change a folder, or nobody could remove it.
    for numbers, position in (_MKDIR, _MKDIRAT):
        owners_all = [
            _argument(position), (_HAS, 0, 3, 0o400), (_HAS, 0, 2, 0o200), (_HAS, 0, 1, 0o100),
            _PERMIT, _REFUSE,
        ]  # fmt: skip
        program += _on_call(numbers[column], owners_all)
    # Before version 3 Landlock lets a file be emptied that is opened to read, or to neither read
    # nor write, which is what both flags together mean. So one of them must be there, alone.
    for numbers, position in (_OPEN, _OPENAT):
        emptied_by_writers = [
            _argument(position), (_HAS, 0, 3, _O_TRUNC), (_HAS, 0, 1, _O_WRONLY),
            (_HAS, 2, 1, _O_RDWR), (_HAS, 0, 1, _O_RDWR), _PERMIT, _REFUSE,
        ]  # fmt: skip
        program += _on_call(numbers[column], emptied_by_writers)
    return [*program, _REFUSE]


def _one_of(position: int, values: tuple[int, ...]) -> list[Instruction]:
    """Permit a call if an argument has one of these values; the kernel reads its low half only."""
    body = [_argument(position)]
    for value in values:
        body += [(_EQUAL, 0, 1, value), _PERMIT]
    return [*body, _REFUSE]


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
