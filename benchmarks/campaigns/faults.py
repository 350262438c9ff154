"""Take from a command what it needs: disk, folders, memory, time, home; or run it several times.

    python -m benchmarks.campaigns.faults --out FOLDER [--only run ...]

A command that meets a fault ends well, or in one line; the same again, without the fault, leaves
the files of an undisturbed one. Disk and read-only faults take a mount, for which one must
be root on Linux; without that a limit on the size of files stands in for a full disk.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

from benchmarks.campaigns.kills import (
    Steps,
    Target,
    Undisturbed,
    fresh_folder,
    lost_after,
    prepare,
    run_target_command,
    targets,
    undisturbed,
)
from benchmarks.campaigns.trials import (
    Campaign,
    Ending,
    Running,
    cpu_seconds,
    load_libraries,
    write_campaign,
)

FINE = ("one line", "ends well", "ended by a signal")
COMMANDS = ("run", "train", "leaderboard publish", "leaderboard build", "submission score")
Fault = tuple[str, Callable[[Path], Any], Callable[[Path], Callable[[], object]]]


class Remover(Steps):
    """Removes what a command has written in the middle of it, instead of ending it."""

    def __init__(self, folder: Path, at: int, out: str) -> None:
        super().__init__(folder, at, None)
        self.out = folder / out

    def die(self) -> None:
        """Remove the folder, once."""
        shutil.rmtree(self.out, ignore_errors=True)


def faults(steps: int, out: str) -> Iterator[Fault]:
    """Yield faults by name: what surrounds a command, and what happens in its process.

    The command takes some steps, and writes to a folder in its own.
    """

    def nothing(_folder: Path) -> Any:
        return nullcontext()

    for size in (0, 100, 1000, 4000):
        yield (
            f"files of {size} bytes at most",
            nothing,
            lambda _, size=size: lambda: _limit_files(size),
        )
    if os.geteuid() == 0 and sys.platform == "linux":
        for size in (4, 8, 12, 16, 24, 32):
            yield (
                f"disk of {size} KB",
                lambda f, size=size: _disk(f / out, f"size={size}k"),
                _untouched,
            )
        yield "read-only folder", lambda f: _disk(f / out, "size=1m,ro"), _untouched
    for share in range(1, 10):
        at = steps * share // 10
        yield f"folder removed at step {at}", nothing, lambda f, at=at: Remover(f, at, out).watch
    for megabytes in (1, 8, 32, 128):
        yield f"{megabytes} MB of memory", nothing, lambda _, m=megabytes: lambda: _limit_memory(m)
    yield "clock set back a day", nothing, lambda _: lambda: _turn_clock(-86400.0)
    yield "clock that runs backwards", nothing, lambda _: lambda: _turn_clock(-1.0)
    yield "no HOME", nothing, lambda _: lambda: os.environ.pop("HOME")
    yield "HOME that is not there", nothing, lambda _: lambda: os.environ.update(HOME="/nowhere/at")


def _untouched(_folder: Path) -> Callable[[], object]:
    return lambda: None


@contextmanager
def _disk(place: Path, options: str) -> Iterator[None]:
    kept = place.with_name("kept")
    place.mkdir(parents=True, exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(place)]
    subprocess.run(mount, check=True)
    try:
        yield
        if "ro" not in options.split(","):
            shutil.copytree(place, kept)
    finally:
        subprocess.run(["umount", str(place)], check=True)
    place.rmdir()
    if kept.exists():  # what the full disk holds, for the next command to go on with
        kept.rename(place)


def _limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def _limit_memory(megabytes: int) -> None:
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * os.sysconf("SC_PAGE_SIZE") + (megabytes << 20)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def _turn_clock(seconds: float) -> None:
    now, calls = time.time, [0]

    def turned() -> float:
        calls[0] += 1
        return now() + seconds * calls[0]

    time.time = turned


def verdict_of(ending: Ending) -> tuple[str, str]:
    """Say how a command met a fault."""
    if ending.code == 0:
        return "ends well", ""
    if ending.one_line:
        return "one line", ""
    return "no clear line", f"code {ending.code}: {(ending.err or ending.out).strip()[-300:]}"


def try_fault(
    campaign: Campaign, target: Target, trials: Path, whole: Undisturbed, fault: Fault
) -> None:
    """Run with a fault, then again without, and compare."""
    name, around, inside = fault
    group, trial = name.rstrip("0123456789 "), f"{target.name}: {name}"
    if f"{group}/{trial}" in campaign.done:
        return
    folder = fresh_folder(target, trials)
    with around(folder):
        ending = run_target_command(target, folder, inside(folder))
    verdict, detail = verdict_of(ending)
    if lost := lost_after(target, folder, whole, done=ending.code == 0):
        verdict, detail = "lost", "; ".join(lost)
    elif "memory" in name and ending.code < 0:
        # Libraries of other languages may crash without memory, and Linux kills for lack of it:
        # then no line can be printed, and what counts is that nothing is lost.
        verdict, detail = "ended by a signal", str(-ending.code)
    _add(campaign, group, trial, verdict, detail)


def _add(campaign: Campaign, group: str, trial: str, verdict: str, detail: str) -> None:
    campaign.add(group, trial, verdict, detail)
    if verdict not in FINE:
        print(f"{trial}: {verdict}: {detail}", flush=True)


def try_at_once(
    campaign: Campaign, target: Target, trials: Path, whole: Undisturbed, count: int, number: int
) -> None:
    """Run several equal commands at once, then one more, and compare."""
    group, trial = f"{count} equal commands at once", f"{target.name}, {number}"
    if f"{group}/{trial}" in campaign.done:
        return
    folder = fresh_folder(target, trials)
    running = [Running(target.words, folder, target.before) for _ in range(count)]
    endings = [one.wait() for one in running]
    verdicts = [verdict_of(ending) for ending in endings]
    bad = [v for v in verdicts if v[0] not in FINE]
    done = sum(ending.code == 0 for ending in endings)
    lost = lost_after(target, folder, whole, done=done > 0)
    if lost or not done:
        bad = [("lost", "; ".join(lost) or "none of them finished")]
    verdict, detail = bad[0] if bad else ("one line" if done < count else "ends well", "")
    _add(campaign, group, trial, verdict, detail)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ["FAITHBENCH_HOME"] = str(out / "cache")
    load_libraries()
    prepare(out / "places")
    campaign = Campaign("faults", out / "faults.jsonl", FINE)
    for target in targets(out / "places"):
        if target.name in (options.only or COMMANDS):
            run_faults(campaign, target, out / "trials")
    write_campaign(
        campaign, "Faults", "python -m benchmarks.campaigns.faults --out FOLDER",
        f"Commands: {', '.join(COMMANDS)}. Each one with a fault is followed by the same without "
        "it.", cpu_seconds(),
    )  # fmt: skip


def run_faults(campaign: Campaign, target: Target, trials: Path) -> None:
    """Try all faults on one command."""
    whole = undisturbed(target, trials)
    for fault in faults(len(whole.steps), target.out):
        try_fault(campaign, target, trials, whole, fault)
    for count in (2, 4):
        for number in range(3):
            try_at_once(campaign, target, trials, whole, count, number)


if __name__ == "__main__":
    main()
