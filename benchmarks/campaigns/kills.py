"""Kill commands at every write, fsync, rename and removal, and at random moments; then run again.

    python -m benchmarks.campaigns.kills --out FOLDER [--random 10] [--only run ...] [--steps N]

A command is run undisturbed, counting what it does to files; then it is killed with SIGKILL at each
of these steps (in a write: once half of it is done), and run again: the same files with the same
bytes but for times, nothing left over, and no process left behind. Calls are counted by functions
put in the place of Python's own, so that this works wherever Python does. A campaign that was
stopped continues with the same command.
"""

from __future__ import annotations

import argparse
import builtins
import io
import os
import shlex
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.campaigns.trials import (
    Campaign,
    Ending,
    Running,
    contents,
    cpu_seconds,
    differences,
    draws,
    load_libraries,
    processes_in,
    run_command,
    write_campaign,
)

if TYPE_CHECKING:
    from faithbench.data.dataset import Dataset

RUN = shlex.split(
    "run --explainer random,attention --task mini.toml --data data --model tiny --limit 6 "
    "--batch 2 --seeds 1 --metrics aopc,naopc,iou_lexical --results results"
)
TASK = """\
name = "mini"
version = 1
title = "Mini"
kind = "classification"
labels = ["no", "yes"]
[folder]
name = "mini"
splits = { train = "train", dev = "dev", test = "test" }
"""
PLAN = """\
[[runs]]
name = "small"
task = "mini.toml"
model = "tiny"
made_by = "python -m benchmarks.campaigns.kills"
limit = 4
explainers = ["random", "attention"]
metrics = "aopc,lodds"
seeds = 1
"""
WORDS = ("good", "bad", "film", "plot", "very", "great", "dull", "and")


@dataclass(frozen=True)
class Target:
    """A command to disturb: what its folder holds before, the command, and where it writes."""

    name: str
    prepare: Callable[[Path], object]
    words: list[str]
    out: str
    before: Callable[[], object] | None = None


def targets(places: Path) -> list[Target]:
    """Return the commands to kill; `places` is a folder for what they share."""

    def copy(name: str) -> Callable[[Path], object]:
        return lambda folder: shutil.copytree(places / name, folder, dirs_exist_ok=True)

    train = (
        "train --task mini.toml --data data --base tiny --epochs 2 --batch-size 8 --rank 2 "
        "--out model"
    )
    return [
        Target("run", copy("training"), RUN, "results"),
        Target("run, four processes", copy("training"), [*RUN, "--jobs", "4"], "results"),
        Target("train", copy("training"), shlex.split(train), "model", _frequent_checkpoints),
        Target("train --full", copy("training"), shlex.split(f"{train} --full"), "model",
               _frequent_checkpoints),
        Target("leaderboard run", copy("board"),
               shlex.split("leaderboard run --plan plan.toml --records records --data data"),
               "records"),
        Target("leaderboard publish", copy("board"),
               shlex.split("leaderboard publish --results results --records records"), "records"),
        Target("leaderboard build", copy("published"),
               shlex.split("leaderboard build --records records --out board --submissions none "
               "--passed none.json"), "board"),
        Target("submission score", copy("submission-attributions"),
               shlex.split("submission score all"), "submissions/my-attr/records"),
        Target("submission run", copy("submission-plugin"),
               shlex.split("submission run all --task sst2 --limit 4"),
               "submissions/my-plug/records"),
    ]  # fmt: skip


def prepare(places: Path) -> None:
    """Make what the commands start from, with the commands themselves."""
    if (places / "ready").exists():
        return
    import json

    import torch

    from faithbench.testing import tiny

    training, board, published = (places / n for n in ("training", "board", "published"))
    rows = [
        {"id": f"e{n}", "text": " ".join([WORDS[n % 2], *WORDS[2 : 3 + n % 5]]), "label": n % 2}
        for n in range(42)
    ]
    for name, start, end in (("train", 0, 26), ("dev", 26, 32), ("test", 32, 42)):
        path = training / "data" / "mini" / f"{name}.jsonl"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(json.dumps(row) + "\n" for row in rows[start:end]))
    (training / "mini.toml").write_text(TASK)
    model = tiny.tiny_model("bert", dtype=torch.float32)
    model.network.save_pretrained(training / "tiny")
    model.tokenizer.save_pretrained(training / "tiny")
    shutil.copytree(training, board)
    (board / "plan.toml").write_text(PLAN)
    published.mkdir(exist_ok=True)
    _done(RUN, board)
    _done(shlex.split("leaderboard publish --results results --records records"), board)
    shutil.move(board / "records", published / "records")
    for kind in ("attributions", "plugin"):
        folder = places / f"submission-{kind}"
        folder.mkdir(exist_ok=True)
        _done(shlex.split(f"submission new my-{kind[:4]} --kind {kind}"), folder)
    scores = places / "submission-attributions" / "submissions" / "my-attr" / "scores"
    keep_scores(scores / "sst2.jsonl", 4)
    (places / "ready").write_text("")


def keep_scores(path: Path, count: int) -> Dataset:
    """Leave of a file of scores those of the first examples, which it returns."""
    from faithbench.data.dataset import load_dataset
    from faithbench.data.tasks import load_task

    data = load_dataset(load_task("sst2"), source="bundled", limit=count)
    ids = [f'"{example.id}"' for example in data.examples]
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(line for line in lines if any(name in line for name in ids)))
    return data


def _done(words: list[str], folder: Path) -> None:
    ending = run_command(words, folder)
    assert ending.code == 0, ending.err


def _frequent_checkpoints() -> None:
    from faithbench.training.fit import fit

    assert fit.__kwdefaults__ is not None
    fit.__kwdefaults__["every"] = 2


class Steps:
    """Counts what a process does to files below a folder, and kills it at one of these steps."""

    def __init__(self, folder: Path, kill_at: int | None, log: Path | None) -> None:
        self.folder, self.kill_at, self.log = str(folder.resolve()), kill_at, log
        self.count, self.pid = 0, os.getpid()
        self.calls: dict[str, Any] = {name: getattr(os, name) for name in _CALLS}

    def step(self, what: str, path: object) -> bool:
        """Count a step; return whether it is the one to die at."""
        place = os.path.abspath(os.fspath(path)) if isinstance(path, str | os.PathLike) else ""  # noqa: PTH100
        if os.getpid() != self.pid or not place.startswith(self.folder):
            return False
        self.count += 1
        if self.log is not None:
            file = os.open(self.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.write(file, f"{what} {place[len(self.folder) + 1 :]}\n".encode())
            os.close(file)
        return self.count == self.kill_at

    def die(self) -> None:
        """End as at a power cut of the process: nothing is cleaned up."""
        os.kill(self.pid, signal.SIGKILL)
        time.sleep(60)

    def watch(self) -> None:
        """Put counting functions in the place of Python's own."""
        for name in _CALLS:
            setattr(os, name, self._counted(name))
        opened = io.open

        def counting_open(
            file: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None,
            errors: str | None = None, newline: str | None = None, closefd: bool = True,
            opener: Any = None,
        ) -> Any:  # fmt: skip
            if isinstance(file, int) or opener or not set(mode) & set("wax+"):
                return opened(file, mode, buffering, encoding, errors, newline, closefd, opener)
            if self.step("open", file):
                self.die()
            raw = _counting_file(self)(file, mode.replace("b", "").replace("t", ""))
            if buffering == 0:
                return raw
            buffered = io.BufferedRandom(raw) if "+" in mode else io.BufferedWriter(raw)
            return (
                buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)
            )

        io.open = counting_open
        builtins.open = counting_open
        self._watch_tensors()

    def _counted(self, name: str) -> Callable[..., Any]:
        call = self.calls[name]

        def counted(path: Any, *rest: Any, **options: Any) -> Any:
            place = path
            if name == "fsync":
                link = Path(f"/proc/self/fd/{path}")
                place = link.readlink() if link.is_symlink() else self.folder
            if self.step(name, place):
                self.die()
            return call(path, *rest, **options)

        return counted

    def _watch_tensors(self) -> None:
        """Count files of tensors, which are written by a library of another language."""
        import safetensors.torch

        save = safetensors.torch.save_file

        def counted(tensors: Any, path: Any, *rest: Any, **options: Any) -> None:
            if self.step("tensors", path):
                self.die()
            save(tensors, path, *rest, **options)
            if self.step("half of tensors", path):
                os.truncate(path, os.path.getsize(path) // 2)  # noqa: PTH202
                self.die()

        safetensors.torch.save_file = counted


_CALLS = ("fsync", "replace", "rename", "unlink", "remove", "mkdir", "truncate", "rmdir", "link")


def _counting_file(steps: Steps) -> type[io.FileIO]:
    class CountingFile(io.FileIO):
        """A file that counts its writes, and dies half-way through the chosen one."""

        def write(self, data: Any) -> int:
            if steps.step("write", self.name):
                super().write(bytes(data)[: len(data) // 2])
                steps.die()
            return super().write(data)

        def truncate(self, size: int | None = None) -> int:
            if steps.step("truncate", self.name):
                steps.die()
            return super().truncate(size)

    return CountingFile


@dataclass(frozen=True)
class Undisturbed:
    """What a command leaves when nothing disturbs it, its steps, and the seconds it takes."""

    files: dict[str, bytes]
    steps: list[str]
    seconds: float


def undisturbed(target: Target, trials: Path) -> Undisturbed:
    """Run a command to its end, and list what it does to files."""
    folder = fresh_folder(target, trials)
    log = trials / "steps.txt"
    log.unlink(missing_ok=True)
    start = time.monotonic()
    ending = run_target_command(target, folder, lambda: Steps(folder, None, log).watch())
    seconds = time.monotonic() - start
    assert ending.code == 0, f"{target.name}: {ending.err or ending.out}"
    steps = log.read_text().splitlines()
    log.unlink()
    return Undisturbed(contents_of(folder), steps, seconds)


def kill_at_step(target: Target, trials: Path, whole: Undisturbed, step: int) -> str:
    """Kill a command at a step, run it again, and return what is wrong then, or nothing."""
    folder = fresh_folder(target, trials)
    ending = run_target_command(target, folder, lambda: Steps(folder, step, None).watch())
    return _problem(target, folder, whole, ending)


def kill_at_moment(target: Target, trials: Path, whole: Undisturbed, seconds: float) -> str:
    """Kill a command after some seconds, run it again, and return what is wrong then."""
    folder = fresh_folder(target, trials)
    running = Running(target.words, folder, target.before)
    time.sleep(seconds)
    running.kill()
    return _problem(target, folder, whole, running.wait())


def _problem(target: Target, folder: Path, whole: Undisturbed, ending: Ending) -> str:
    if not ending.killed and ending.code != 0:
        return f"not killed, but ended with {ending.code}: {ending.err[-200:]}"
    left = _left_running(folder)
    return "; ".join([*left, *lost_after(target, folder, whole, done=ending.code == 0)])


def lost_after(target: Target, folder: Path, whole: Undisturbed, *, done: bool) -> list[str]:
    """Run a command again, and return what is not as an undisturbed one leaves it."""
    again = run_target_command(target, folder, None)
    # One that is finished may say so.
    if again.code == 0 or done or "already holds" in again.err:
        return differences(contents_of(folder), whole.files)
    return [f"run again: {again.err.strip()[-300:]}"]


def _left_running(folder: Path) -> list[str]:
    """Return a line if processes of a killed command go on for more than five seconds."""
    deadline = time.monotonic() + 5
    while left := processes_in(Path(f"{folder}.temporary")):
        if time.monotonic() > deadline:
            return [f"{len(left)} processes go on"]
        time.sleep(0.05)
    return []


def run_target_command(target: Target, folder: Path, watch: Callable[[], object] | None) -> Ending:
    """Run a command to its end, or to what `watch` does to it."""

    def before() -> None:
        if target.before is not None:
            target.before()
        if watch is not None:
            watch()

    return run_command(target.words, folder, before)


def fresh_folder(target: Target, trials: Path) -> Path:
    """Return a folder as the command finds it: always of the same name, since cards keep names."""
    folder = trials / "work"
    for path in _places(folder):
        shutil.rmtree(path, ignore_errors=True)
    folder.mkdir(parents=True)
    target.prepare(folder)
    return folder


def contents_of(folder: Path) -> dict[str, bytes]:
    """Return all files that a command can have left."""
    return contents(*_places(folder))


def _places(folder: Path) -> list[Path]:
    return [folder, *(Path(f"{folder}.{name}") for name in ("home", "temporary"))]


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--random", type=int, default=10, help="kills at random moments")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--steps", type=int, help="steps per command, spread evenly; all without")
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ["FAITHBENCH_HOME"] = str(out / "cache")
    load_libraries()
    prepare(out / "places")
    campaign = Campaign("kills", out / "kills.jsonl")
    for target in targets(out / "places"):
        if not options.only or target.name in options.only:
            run_target(target, out / "trials", campaign, options.random, options.steps)
    write_campaign(
        campaign, "Kills", "python -m benchmarks.campaigns.kills --out FOLDER",
        "Each kill is followed by the same command, whose files are compared with those of an "
        "undisturbed one. With --steps, so many of a command's steps are tried, spread evenly.",
        cpu_seconds(),
    )  # fmt: skip


def run_target(
    target: Target, trials: Path, campaign: Campaign, at_random: int, most: int | None
) -> None:
    """Kill one command at its steps and at random moments."""
    whole = undisturbed(target, trials)
    print(f"{target.name}: {len(whole.steps)} steps, {whole.seconds:.1f} s", flush=True)
    count = len(whole.steps)
    tried = min(most or count, count)
    for step in sorted({1 + index * count // tried for index in range(tried)}):
        trial = f"step {step}"
        if f"{target.name}, at a step/{trial}" not in campaign.done:
            problem = kill_at_step(target, trials, whole, step)
            # Not in the name of the trial: temporary files have other names each time.
            problem = problem and f"{whole.steps[step - 1]}: {problem}"
            campaign.add(
                f"{target.name}, at a step", trial, "finding" if problem else "fine", problem
            )
            if problem:
                print(f"  {trial}: {problem}", flush=True)
    random = draws(target.name)
    for number in range(at_random):
        seconds = random.uniform(0, whole.seconds)
        trial = f"moment {number}"
        if f"{target.name}, at a moment/{trial}" not in campaign.done:
            problem = kill_at_moment(target, trials, whole, seconds)
            verdict = "finding" if problem else "fine"
            campaign.add(f"{target.name}, at a moment", trial, verdict, problem)
            if problem:
                print(f"  {trial} ({seconds:.2f} s): {problem}", flush=True)


if __name__ == "__main__":
    main()
