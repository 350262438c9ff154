"""The filter of system calls, run by a small interpreter: what each call gets on each machine."""

from __future__ import annotations

import errno

import pytest

from faithbench.submissions.sandbox import seccomp
from faithbench.submissions.sandbox.seccomp import Instruction

X86, ARM = seccomp._ARCHITECTURES["x86_64"], seccomp._ARCHITECTURES["aarch64"]
OWN = 4242
ALLOWED, KILLED = 0x7FFF0000, 0x80000000
REFUSED, UNKNOWN = 0x00050000 | errno.EPERM, 0x00050000 | errno.ENOSYS


def verdict(machine: tuple[int, int], number: int, *arguments: int, audit: int = 0) -> int:
    """Return what the kernel would do with a call, following linux/filter.h."""
    fields = {0: number, 4: audit or machine[0]}
    for index, argument in enumerate(arguments):
        fields[16 + 8 * index] = argument & 0xFFFFFFFF
        fields[20 + 8 * index] = argument >> 32
    program: list[Instruction] = seccomp._program(*machine, OWN)
    accumulator, position = 0, 0
    while True:
        code, if_true, if_false, constant = program[position]
        position += 1
        if code == 0x06:
            return constant
        if code == 0x20:
            accumulator = fields[constant]
            continue
        holds = {
            0x15: accumulator == constant,
            0x35: accumulator >= constant,
            0x45: bool(accumulator & constant),
        }[code]
        position += if_true if holds else if_false


# Numbers on x86-64 and on 64-bit ARM, from unistd.h, of calls that reach outside.
REACHING = {
    "socket": (41, 198), "socketpair": (53, 199), "connect": (42, 203), "sendto": (44, 206),
    "sendmsg": (46, 211), "recvmsg": (47, 212), "bind": (49, 200), "io_uring_setup": (425, 425),
    "shmat": (30, 196), "shmget": (29, 194), "msgsnd": (69, 189), "msgget": (68, 186),
    "semop": (65, 193), "mq_open": (240, 180), "memfd_create": (319, 279),
    "setpriority": (141, 140), "ioprio_set": (251, 30), "sched_setscheduler": (144, 119),
    "execve": (59, 221), "execveat": (322, 281), "unshare": (272, 97), "setns": (308, 268),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "pidfd_open": (434, 434),
    "truncate": (76, 45), "setxattr": (188, 5), "setxattrat": (463, 463), "fchmod": (91, 52),
    "fchmodat2": (452, 452), "utimensat": (280, 88), "linkat": (265, 37), "mknodat": (259, 33),
    "umask": (95, 166), "mount": (165, 40), "bpf": (321, 280), "setrlimit": (160, 164),
    "file_setattr": (469, 469),
}  # fmt: skip


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize("name", REACHING)
def test_what_reaches_outside_is_refused(machine: tuple[int, int], name: str) -> None:
    assert verdict(machine, REACHING[name][machine[1]]) == REFUSED


@pytest.mark.parametrize("machine", [X86, ARM])
def test_a_call_of_a_future_kernel_is_refused(machine: tuple[int, int]) -> None:
    assert {verdict(machine, number) for number in range(470, 1000)} == {REFUSED}


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize("name", seccomp._ALLOWED)
def test_every_call_of_the_table_is_allowed(machine: tuple[int, int], name: str) -> None:
    number = seccomp._ALLOWED[name][machine[1]]
    if number != seccomp._NONE:
        assert verdict(machine, number) == ALLOWED


@pytest.mark.parametrize("machine", [X86, ARM])
def test_commands_that_reach_outside_are_refused(machine: tuple[int, int]) -> None:
    (fcntl, _, _), (ioctl, _, _) = seccomp._OF_VALUES["fcntl"], seccomp._OF_VALUES["ioctl"]
    f_setfd, f_setown, f_setsig, f_setown_ex, f_setpipe_size = 2, 8, 10, 15, 1031
    column = machine[1]
    assert verdict(machine, fcntl[column], 3, f_setfd) == ALLOWED
    for command in (f_setown, f_setsig, f_setown_ex, f_setpipe_size):
        assert verdict(machine, fcntl[column], 3, command) == REFUSED
    tcgets, set_flags, fioasync = 0x5401, 0x40086602, 0x5452
    assert verdict(machine, ioctl[column], 3, tcgets) == ALLOWED
    for command in (set_flags, fioasync):
        assert verdict(machine, ioctl[column], 3, command) == REFUSED
    prctl, affinity = seccomp._OF_VALUES["prctl"][0], seccomp._OF_VALUES["sched_setaffinity"][0]
    set_name, set_death_signal = 15, 1
    assert verdict(machine, prctl[column], set_name) == ALLOWED
    assert verdict(machine, prctl[column], set_death_signal) == REFUSED
    assert verdict(machine, affinity[column], 0) == ALLOWED
    assert verdict(machine, affinity[column], OWN - 1) == REFUSED


@pytest.mark.parametrize(
    ("machine", "number", "position"), [(X86, 83, 1), (X86, 258, 2), (ARM, 34, 2)]
)
def test_a_folder_must_be_open_to_its_owner(
    machine: tuple[int, int], number: int, position: int
) -> None:
    before = [0] * position
    for mode in (0o777, 0o700, 0o755):
        assert verdict(machine, number, *before, mode) == ALLOWED
    for mode in (0o000, 0o300, 0o500, 0o600, 0o077):
        assert verdict(machine, number, *before, mode) == REFUSED


@pytest.mark.parametrize(
    ("machine", "number", "position"), [(X86, 2, 1), (X86, 257, 2), (ARM, 56, 2)]
)
def test_a_file_is_emptied_by_who_may_write_it(
    machine: tuple[int, int], number: int, position: int
) -> None:
    before, create, empty = [0] * position, 0o100, 0o1000
    read, write, both, neither = range(4)
    for flags in (read, write, both, neither, write | create, write | empty, both | empty | create):
        assert verdict(machine, number, *before, flags) == ALLOWED
    for flags in (read | empty, neither | empty, read | empty | create):
        assert verdict(machine, number, *before, flags) == REFUSED


@pytest.mark.parametrize("machine", [X86, ARM])
def test_threads_may_start_and_processes_may_not(machine: tuple[int, int]) -> None:
    clone, thread = seccomp._CLONE[machine[1]], 0x00010000
    vm, files, vfork, child_signal = 0x100, 0x400, 0x4000, 17
    assert verdict(machine, clone, thread | vm | files) == ALLOWED
    assert verdict(machine, clone, child_signal) == REFUSED
    assert verdict(machine, clone, vm | vfork | child_signal) == REFUSED
    new_user, new_mount, new_network = 0x10000000, 0x00020000, 0x40000000
    for namespace in (new_user, new_mount, new_network):
        assert verdict(machine, clone, thread | vm | files | namespace) == REFUSED
    # The flag in the upper half, which the kernel ignores, is not the flag.
    assert verdict(machine, clone, (thread << 32) | child_signal) == REFUSED
    # Its flags are in memory: the C library falls back to clone.
    assert verdict(machine, seccomp._CLONE3[machine[1]], thread) == UNKNOWN


@pytest.mark.parametrize("machine", [X86, ARM])
@pytest.mark.parametrize("numbers", [seccomp._KILL, seccomp._TGKILL])
def test_a_process_may_signal_itself_only(
    machine: tuple[int, int], numbers: tuple[int, int]
) -> None:
    number = numbers[machine[1]]
    assert verdict(machine, number, OWN, 6) == ALLOWED
    for other in (OWN + 1, 1, 0, 0xFFFFFFFF):  # a parent, init, the group, everything
        assert verdict(machine, number, other, 9) == REFUSED


@pytest.mark.parametrize("machine", [X86, ARM])
def test_limits_may_be_read_and_not_set(machine: tuple[int, int]) -> None:
    prlimit = seccomp._PRLIMIT[machine[1]]
    assert verdict(machine, prlimit, 0, 9, 0) == ALLOWED
    for pointer in (0x7FFF_1234_5678, 0x1234_5678, 0x7FFF_0000_0000):
        assert verdict(machine, prlimit, 0, 9, pointer) == REFUSED


def test_calls_of_other_tables_are_refused() -> None:
    x32_socket = 0x40000000 + 41
    assert verdict(X86, x32_socket) == REFUSED
    i386 = 0x40000003
    assert verdict(X86, 359, audit=i386) == KILLED  # socket, in the numbers of 32-bit x86
    assert verdict(ARM, 63, audit=X86[0]) == KILLED


@pytest.mark.parametrize("machine", [X86, ARM])
def test_jumps_fit_a_byte_and_stay_inside(machine: tuple[int, int]) -> None:
    program = seccomp._program(*machine, OWN)
    for position, (code, if_true, if_false, _) in enumerate(program):
        assert 0 <= if_true < 256 and 0 <= if_false < 256
        if code in (0x15, 0x35, 0x45):
            assert position + 1 + max(if_true, if_false) < len(program)
    assert program[-1][0] == 0x06


def test_elsewhere_there_is_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("platform.machine", lambda: "riscv64")
    assert not seccomp.allow_calls()
    monkeypatch.undo()
    monkeypatch.setattr("platform.system", lambda: "Darwin")
    assert not seccomp.allow_calls()
