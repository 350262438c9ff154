"""What campaigns share: commands in processes of their own, folders compared, trials counted."""

from __future__ import annotations

import json
import os
import random
import re
import signal
import sys
import time
import traceback
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from tabulate import tabulate

TRACEBACK = "Traceback (most recent call last)"


def load_libraries() -> None:
    """Import what commands need, so that processes forked from this one start at once."""
    # Before torch is there: a process with threads should not fork.
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HUB_OFFLINE"):
        os.environ.setdefault(name, "1")
    import datasets  # noqa: F401
    import peft  # noqa: F401
    import scipy.stats
    import sklearn.metrics
    import torch
    import transformers
    from transformers import AutoModel, AutoTokenizer, BertForSequenceClassification  # noqa: F401

    from faithbench.cli import app  # noqa: F401
    from faithbench.run import loop, request  # noqa: F401
    from faithbench.training import fit  # noqa: F401

    torch.set_num_threads(1)
    assert scipy.stats and sklearn.metrics and transformers


@dataclass(frozen=True)
class Ending:
    """How a command ended: its exit code, minus the number of a signal, and what it printed."""

    code: int
    out: str
    err: str

    @property
    def killed(self) -> bool:
        """Return whether it was killed, as was planned."""
        return self.code == -signal.SIGKILL

    @property
    def one_line(self) -> bool:
        """Return whether it failed with one line of error, and no traceback."""
        complaint = [line for line in self.err.splitlines() if line.startswith("Error: ")]
        return self.code == 1 and len(complaint) == 1 and TRACEBACK not in self.out + self.err


class Running:
    """A command line that runs in a process forked from this one."""

    def __init__(
        self, words: list[str], folder: Path, before: Callable[[], object] | None = None
    ) -> None:
        # Pipes, since a limit on the size of files would hold for what is printed, too.
        pipes = [os.pipe(), os.pipe()]
        self.pid = os.fork()
        if self.pid == 0:
            _be_command(words, folder, (pipes[0][1], pipes[1][1]), before)
        for read, write in pipes:
            os.close(write)
            os.set_blocking(read, False)
        self.printed = {read: b"" for read, _ in pipes}

    def _listen(self) -> None:
        for pipe in self.printed:
            with suppress(BlockingIOError):
                while data := os.read(pipe, 1 << 16):
                    self.printed[pipe] += data

    def wait(self, seconds: float = 300.0) -> Ending:
        """Wait for its end; a command that hangs is killed, with code -24 as if by a CPU limit."""
        deadline = time.monotonic() + seconds
        while True:
            self._listen()
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                break
            if time.monotonic() > deadline:
                self.kill()
                os.waitpid(self.pid, 0)
                status = signal.SIGXCPU
                break
            time.sleep(0.005)
        self._listen()
        for pipe in self.printed:
            os.close(pipe)
        out, err = (data.decode(errors="replace") for data in self.printed.values())
        return Ending(os.waitstatus_to_exitcode(status), out, err)

    def kill(self) -> None:
        """Kill it, if it is still there."""
        with suppress(ProcessLookupError):
            os.kill(self.pid, signal.SIGKILL)


def run_command(
    words: list[str],
    folder: Path,
    before: Callable[[], object] | None = None,
    seconds: float = 300.0,
) -> Ending:
    """Run a command line in a folder, in a process of its own; `before` runs first in there."""
    return Running(words, folder, before).wait(seconds)


def _be_command(
    words: list[str], folder: Path, pipes: tuple[int, int], before: Callable[[], object] | None
) -> None:
    """Become the command: never returns."""
    code = 70
    try:
        for pipe, descriptor in zip(pipes, (1, 2), strict=True):
            os.dup2(pipe, descriptor)
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115
        os.chdir(folder)
        _own_places(folder)
        if before is not None:
            before()
        code = _run_main(words)
    except BaseException:
        traceback.print_exc()
    finally:
        with suppress(Exception):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def _own_places(folder: Path) -> None:
    """Give a command a home and a folder for temporary files below its own folder."""
    import tempfile

    for name, variable in (("home", "HOME"), ("temporary", "TMPDIR")):
        place = folder.parent / f"{folder.name}.{name}"
        place.mkdir(exist_ok=True)
        os.environ[variable] = str(place)
    os.environ.setdefault("FAITHBENCH_HOME", os.environ["HOME"])
    os.environ["COLUMNS"] = "80"
    # Named, not found: Python tries folders by a file, which a kill at that moment leaves.
    tempfile.tempdir = os.environ["TMPDIR"]


def _run_main(words: list[str]) -> int:
    from faithbench.cli import app

    sys.argv = ["faithbench", *words]
    try:
        app.main()
    except SystemExit as stop:
        return int(stop.code or 0)
    return 0


def contents(*folders: Path) -> dict[str, bytes]:
    """Return all files of folders by their relative paths, without what equal runs differ in."""
    files = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            if path.is_symlink() or path.is_file():
                data = str(path.readlink()).encode() if path.is_symlink() else path.read_bytes()
                files[f"{folder.name}/{path.relative_to(folder)}"] = timeless(path.name, data)
    return files


def timeless(name: str, data: bytes) -> bytes:
    """Return the bytes of a file without its times, and without the digest of a record of them."""
    if name.endswith(".times.jsonl"):
        return re.sub(rb'"seconds":[^}]+', b"", data)
    if name.endswith(".json"):
        data, count = re.subn(rb'  "timing": \{.*?\n  \}', b"", data, flags=re.DOTALL)
        return re.sub(rb'\n  "sha256": "[0-9a-f]{64}",', b"", data) if count else data
    return data


def differences(actual: dict[str, bytes], expected: dict[str, bytes]) -> list[str]:
    """Return a line for each file that is missing, left over or other than expected."""
    lines = [f"missing: {name}" for name in sorted(set(expected) - set(actual))]
    lines += [f"left over: {name}" for name in sorted(set(actual) - set(expected))]
    both = sorted(set(actual) & set(expected))
    return lines + [f"differs: {name}" for name in both if actual[name] != expected[name]]


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose environment names a folder: on Linux alone."""
    me, found = os.getpid(), []
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            own = int(entry.name) != me and str(folder).encode() in (entry / "environ").read_bytes()
            if own:
                found.append(int(entry.name))
    return found


@dataclass
class Campaign:
    """Counts trials by group and verdict, and keeps them in a log that the next call goes on with.

    Every verdict but those of `fine` is a finding.
    """

    name: str
    log: Path | None = None
    fine: tuple[str, ...] = ("fine",)
    counts: dict[str, Counter[str]] = field(default_factory=dict)
    findings: list[str] = field(default_factory=list)
    done: set[str] = field(default_factory=set)
    continued: bool = False

    def __post_init__(self) -> None:
        if self.log is not None and self.log.is_file():
            for line in self.log.read_text().splitlines():
                self._count(*json.loads(line))
                self.continued = True

    def add(self, group: str, trial: str, verdict: str, detail: str = "") -> None:
        """Count a trial and keep it in the log."""
        self._count(group, trial, verdict, detail)
        if self.log is not None:
            with self.log.open("a") as file:
                file.write(json.dumps([group, trial, verdict, detail]) + "\n")

    def _count(self, group: str, trial: str, verdict: str, detail: str) -> None:
        self.counts.setdefault(group, Counter())[verdict] += 1
        self.done.add(f"{group}/{trial}")
        if verdict not in self.fine:
            self.findings.append(f"{group}, {trial}: {verdict}{f' ({detail})' if detail else ''}")

    @property
    def total(self) -> int:
        """Return the number of trials."""
        return sum(sum(counter.values()) for counter in self.counts.values())

    def table(self) -> str:
        """Return the counts as a table of markdown, and the findings below."""
        verdicts = [
            *self.fine,
            *sorted({v for c in self.counts.values() for v in c} - {*self.fine}),
        ]
        rows = [
            [group, sum(counter.values()), *(counter[verdict] for verdict in verdicts)]
            for group, counter in sorted(self.counts.items())
        ]
        rows.append(["all", *(sum(column) for column in list(zip(*rows, strict=True))[1:])])
        table = tabulate(rows, ["what", "trials", *verdicts], tablefmt="github")
        shown = "\n".join(f"- {line[:300]}" for line in self.findings[:40])
        return f"{table}\n\n{len(self.findings)} findings.\n{shown}".strip()


def write_campaign(campaign: Campaign, title: str, command: str, note: str, cpu: float) -> None:
    """Put a campaign's counts into RESULTS.md."""
    from benchmarks.tables import write_section

    # The log of an earlier call does not say what its trials took.
    took = "" if campaign.continued else f" in {cpu:.0f} s of CPU"
    body = f"{note} {campaign.total:,} trials{took}.\n\n{campaign.table()}"
    write_section(title, command, body)


def cpu_seconds() -> float:
    """Return the seconds of CPU of this process and of those that it waited for."""
    return sum(os.times()[:4])


@contextmanager
def alarm(seconds: float) -> Iterator[None]:
    """Raise TimeoutError in the block when it has taken so many seconds of CPU.

    Not of the clock: on a busy machine everything hangs.
    """

    def stop(*_: object) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def draws(*names: object) -> random.Random:
    """Return random numbers that depend on names alone."""
    return random.Random("/".join(map(str, names)))
