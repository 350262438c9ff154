"""Hostile submissions, through the checks and through the confined worker.

    python -m benchmarks.campaigns.hostile --out FOLDER [--pairs 400] [--workers 12]

An honest submission is changed in every way that the tests know (strays, links, entries with lies,
forged records and rows), in pairs of these, in its name, and by bytes; each must be refused in one
line by what CI does with it (`submission scope` and `check`), or be harmless, with no file changed;
and the board, for which the honest one has passed, must leave it out. Then explainers that read,
write, talk, fork, hang, print, raise and return nonsense are run by `submission run`: each ends in
one line or an ordinary result, with no file outside their folder changed and no secret in what they
return. Last, the conformance suite is run on faithbench's own explainers in a confined process:
what honest code needs must be allowed.
"""

from __future__ import annotations

import argparse
import os
import shlex
import shutil
import sys
import time
from pathlib import Path

from benchmarks.campaigns.kills import keep_scores, prepare
from benchmarks.campaigns.trials import (
    Campaign,
    contents,
    cpu_seconds,
    differences,
    draws,
    load_libraries,
    run_command,
    write_campaign,
)
from faithbench.core.errors import FaithbenchError
from faithbench.explainers.registry import EXPLAINERS
from tests.support.hostile_submissions import NAMES, Hostile, hostile_files, hostile_records

FINE = ("one line", "harmless")
SECRET = "a secret that nobody was given" * 9
CODE = """\
import os, sys, socket, threading, time
from dataclasses import dataclass
import faithbench

@faithbench.explainer("{name}")
@faithbench.per_example
@dataclass(frozen=True)
class Mine:
    def __call__(self, probs, example):
        scores = [1.0] * len(example.tokens)
        {action}
        return scores
"""
ACTIONS = {
    "honest": "pass",
    # With as many scores as are asked for: a secret that can be read would end in a record.
    "reads a secret": "scores = [float(n) for n in open({secret!r}, 'rb').read()][: len(scores)]",
    "reads passwd": "open('/etc/passwd').read()",
    "reads the environment of its parent": "open(f'/proc/{{os.getppid()}}/environ').read()",
    "writes outside": "open({outside!r} + '/x', 'w').write('x')",
    "removes outside": "os.remove({outside!r} + '/kept')",
    "empties outside": "os.open({outside!r} + '/kept', os.O_RDONLY | os.O_TRUNC)",
    "links outside": "os.symlink({outside!r}, {outside!r} + '/link')",
    "talks": "socket.socket().bind(('127.0.0.1', 0))",
    "talks in pairs": "socket.socketpair()",
    "talks by path": "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).connect({outside!r} + '/x')",
    "forks": "os.fork()",
    "starts a shell": "assert os.system('id') == 0",
    "signals its parent": "os.kill(os.getppid(), 9)",
    "slows its parent": "os.setpriority(os.PRIO_PROCESS, os.getppid(), 19)",
    "hangs": "time.sleep(10**6)",
    "spins": "\n        while True: pass",
    "prints for ever": "\n        while True: print('x' * 10**6)",
    "takes memory": "x = bytearray(10**11)",
    "writes a large file": "open('large', 'wb').write(bytes(65 << 20))",
    "hides a folder": "os.mkdir('hidden', 0o300)",
    "nests folders": "[(os.mkdir('x'), os.chdir('x')) for _ in range(3000)]",
    "exits": "os._exit(0)",
    "raises a number": "raise SystemExit(3)",
    "raises many lines": "raise ValueError('a\\nb\\x1b[31m\\u202e' * 1000)",
    "calls itself for ever": "call = lambda again: again(again); call(call)",
    "returns NaN": "scores = [float('nan')] * len(scores)",
    "returns infinity": "scores = [1e400] * len(scores)",
    "returns texts": "scores = ['x'] * len(scores)",
    "returns nothing": "scores = None",
    "returns too few": "scores = scores[:-1]",
    "returns too many": "scores = scores * 10**6",
    "writes to every descriptor": "[os.write(n, b'x') for n in range(3, 20) if n]",
    "closes every descriptor": "os.closerange(0, 1000)",
}
# A descriptor is closed or full, or not, and folders in its own do no harm if they can be removed:
# the others must fail, since what they try is forbidden.
UNDECIDED = ("writes to every descriptor", "closes every descriptor", "nests folders")


# Run by `python -c` in a process that confines itself before it loads anything.
CONFORMANCE = """\
import os, sys
from pathlib import Path
from faithbench.submissions.sandbox.confine import Limits, confine
line, names = int(sys.argv[-1]), sys.argv[1:-1]
held = confine(Limits({seconds}, {memory}), [], Path.cwd())
assert not held.missing, held.missing
from faithbench.explainers.selection import find_explainers
from faithbench.testing.conformance import check_explainer
for name in names:
    (chosen,) = find_explainers(name, rationale=name == "human")
    try:
        check_explainer(chosen.explainer)
        told = ""
    except BaseException as error:
        told = " ".join(f"{{type(error).__name__}}: {{error}}".split())[:200]
    os.write(line, f"{{name}}\\t{{told}}\\n".encode())
"""


def check_variants(campaign: Campaign, honest: Path, work: Path, pairs: int) -> None:
    """Check changed copies of an honest submission."""
    from faithbench.submissions.layout import check_name

    for name in NAMES:
        if f"names/{name!r}" in campaign.done:
            continue
        try:
            check_name(name)
            campaign.add("names", repr(name), "accepted")
        except FaithbenchError as error:
            line = str(error)
            campaign.add("names", repr(name), "one line" if line.isprintable() else "lines")
    single = [*hostile_files(), *hostile_records(honest)]
    for case in single:
        if f"one change/{case[0]}" not in campaign.done:
            campaign.add("one change", case[0], *_checked(honest, work, [case]))
    check_pairs(campaign, honest, work, pairs)


def check_pairs(campaign: Campaign, honest: Path, work: Path, pairs: int) -> None:
    """Check copies with two changes at once, and with bytes changed."""
    single = [*hostile_files(), *hostile_records(honest)]
    numbers = draws("hostile", pairs)
    for number in range(pairs):
        cases = numbers.sample(single, 2)
        if f"bytes/{number}" in campaign.done:
            continue
        campaign.add("two changes", str(number), *_checked(honest, work, cases))
        campaign.add("bytes", str(number), *_checked(honest, work, [_flip(honest, number)]))


def _flip(honest: Path, number: int) -> Hostile:
    """Return a change of some bytes of one file."""
    numbers = draws("bytes", number)
    paths = sorted(path.relative_to(honest) for path in honest.rglob("*") if path.is_file())
    inside = numbers.choice(paths)

    def change(folder: Path) -> None:
        data = bytearray((folder / inside).read_bytes())
        for _ in range(numbers.choice((1, 4, 64))):
            data[numbers.randrange(len(data))] = numbers.randrange(256)
        (folder / inside).write_bytes(data)

    return f"bytes of {inside}", change


def _checked(honest: Path, work: Path, cases: list[Hostile]) -> tuple[str, str]:
    """Check a changed copy; return the verdict and what is behind it."""
    from faithbench.submissions.check import Checks, check_submission

    parent = work / "checked"
    shutil.rmtree(parent, ignore_errors=True)
    folder = parent / honest.name
    shutil.copytree(honest, folder)
    try:
        for _, change in cases:
            change(folder)
    except (OSError, ValueError, KeyError, IndexError, StopIteration, RecursionError):
        pass  # the first change took away, or nested too deeply, what the second is for
    before = contents(parent)
    try:
        faults = check_submission(folder, Checks(None, work / "cache")).faults
        refused = _refused_by_scope(folder)
        shown = _is_shown(honest, folder, work)
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"[:200]
    if shown:
        return "shown unchecked", ""
    if changed := differences(contents(parent), before):
        return "changed a file", changed[0]
    lines = [*refused, *(str(fault) for fault in faults)]
    if any(not line.isprintable() or len(line) > 1200 for line in lines):
        return "more than a line", lines[0][:200]
    return ("one line" if lines else "harmless"), ""


def _refused_by_scope(folder: Path) -> list[str]:
    """Return why `submission scope` refuses a request with these files, in a line, or nothing."""
    from faithbench.submissions.review import changed_paths, touched

    listing = b""
    for path in sorted(folder.rglob("*")):
        if path.is_symlink() or not path.is_dir():
            mode = "120000" if path.is_symlink() else "100644"
            name = os.fsencode(path.relative_to(folder))
            listing += f":000000 {mode} 0000000 1234567 A".encode()
            listing += b"\0submissions/" + folder.name.encode() + b"/" + name + b"\0"
    try:
        touched(changed_paths(listing))
    except FaithbenchError as error:
        return [str(error)]
    return []


def _is_shown(honest: Path, folder: Path, work: Path) -> bool:
    """Return whether a board takes changed files, where the honest ones have passed."""
    from faithbench.core.files import file_sha256
    from faithbench.records.passed import (
        PassedCheck,
        accepted_submissions,
        content_digest,
        write_passed,
    )

    def files(top: Path) -> dict[str, str | bool]:
        paths = (path for path in top.rglob("*") if path.is_symlink() or path.is_file())
        return {str(p.relative_to(top)): p.is_symlink() or file_sha256(p) for p in paths}

    passed = work / "passed.json"
    if not passed.is_file():
        check = PassedCheck(content=content_digest(honest), records=())
        write_passed(passed, {honest.name: check})
    taken = accepted_submissions(folder.parent, passed).accepted
    return bool(taken) and files(folder) != files(honest)


def run_workers(campaign: Campaign, plugin: Path, work: Path, most: int) -> None:
    """Run hostile explainers as `submission run` does, in the confined worker."""
    for action, code in list(ACTIONS.items())[:most]:
        if f"code in the worker/{action}" in campaign.done:
            continue
        folder, outside = work / "worker", work / "outside"
        for path in (folder, outside, Path(f"{folder}.temporary"), Path(f"{folder}.home")):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(plugin, folder)
        outside.mkdir()
        (outside / "kept").write_text("kept")
        (outside / "secret").write_text(SECRET)
        (submission,) = (folder / "submissions").iterdir()
        name = _explainer_of(submission)
        text = code.format(secret=str(outside / "secret"), outside=str(outside))
        (submission / "explainer.py").write_text(CODE.format(name=name, action=text))
        before = contents(outside)
        words = shlex.split("submission run all --task sst2 --limit 2 --seconds 40")
        start = time.monotonic()
        ending = run_command(words, folder, seconds=240)
        changed = differences(contents(outside), before)
        left = contents(Path(f"{folder}.temporary"))
        verdict, detail = ("harmless", "") if ending.code == 0 else ("one line", "")
        if (action == "honest") != (ending.code == 0) and action not in UNDECIDED:
            verdict, detail = "another end than expected", (ending.out + ending.err)[-300:]
        if ending.code not in (0, 1) or "Traceback" in ending.out + ending.err:
            verdict, detail = "no clear line", (ending.err or ending.out)[-300:]
        if changed or left:
            verdict, detail = "changed a file", str(changed or list(left))[:200]
        if SECRET in ending.out + ending.err:
            verdict, detail = "read what it was not given", ""
        campaign.add("code in the worker", action, verdict, detail)
        said = " ".join((ending.out + ending.err).split())[-240:]
        print(f"{action}: {verdict}, {time.monotonic() - start:.0f} s: {said}", flush=True)


def conforming() -> list[str]:
    """Return our explainers for the suite: l2e and masks of heads need files of a model."""
    masks = {"lrp-mask": "lrp-mask:mask=ones"}
    return [masks.get(name, name) for name in EXPLAINERS if name != "l2e"]


def run_conformance(campaign: Campaign, names: list[str]) -> None:
    """Run the conformance suite on explainers of ours, all in one confined process."""
    from faithbench.core.files import temporary_folder
    from faithbench.submissions.sandbox.confine import Limits
    from faithbench.submissions.sandbox.process import run_isolated

    group, limits = "conformance, confined", Limits(seconds=3600, memory_mb=8192)
    left = [name for name in names if f"{group}/{name}" not in campaign.done]
    body = CONFORMANCE.format(seconds=limits.seconds, memory=limits.memory_mb)

    def take(line: bytes) -> None:
        name, _, told = line.decode().partition("\t")
        campaign.add(group, name, "stopped" if told else "harmless", told)

    if left:
        with temporary_folder() as home:
            run_isolated([sys.executable, "-c", body, *left], home, limits, take)
    for name in left:
        if f"{group}/{name}" not in campaign.done:
            campaign.add(group, name, "no answer")


def _explainer_of(submission: Path) -> str:
    from faithbench.submissions.entry import read_entry

    return read_entry(submission).explainer or submission.name


def honest_submission(work: Path) -> Path:
    """Return a submission of attributions with its record, measured on four sentences."""
    from faithbench.submissions.entry import read_entry
    from faithbench.submissions.measure import load_setup, score_attributions
    from faithbench.submissions.scaffold import new_submission

    folder = work / "honest" / "my-w"
    if (work / "honest.done").exists():
        return folder
    shutil.rmtree(folder.parent, ignore_errors=True)
    folder = new_submission(folder.parent, "my-w", "attributions")
    setup = load_setup(keep_scores(folder / "scores" / "sst2.jsonl", 4))
    score_attributions(folder, read_entry(folder), setup, lambda *_: None)
    (work / "honest.done").write_text("")
    return folder


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pairs", type=int, default=400)
    parser.add_argument("--workers", type=int, default=len(ACTIONS))
    options = parser.parse_args()
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    os.environ["FAITHBENCH_HOME"] = str(out / "cache")
    load_libraries()
    campaign = Campaign("hostile", out / "hostile.jsonl", FINE)
    check_variants(campaign, honest_submission(out), out, options.pairs)
    print(campaign.table(), flush=True)
    if options.workers:
        prepare(out / "places")
        run_workers(campaign, out / "places" / "submission-plugin", out, options.workers)
        run_conformance(campaign, conforming())
    write_campaign(
        campaign, "Hostile submissions", "python -m benchmarks.campaigns.hostile --out FOLDER",
        "Each changed copy goes through scope, check and the board, hostile code and the "
        "conformance suite of our own explainers through the confined worker.", cpu_seconds(),
    )  # fmt: skip


if __name__ == "__main__":
    main()
