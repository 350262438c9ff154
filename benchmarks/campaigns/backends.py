"""Faults of backends with real processes: lost nodes, workers without memory, drivers killed.

Run: python benchmarks/campaigns/backends.py [--nodes N] [--rounds N] [--only WORD]

Every run is a command in a process of its own, on a tiny model, with a plugin that misbehaves in a
worker when a file asks for it. Ray's two nodes are real ones, on two loopback addresses. A fault
counts only if it is seen to have struck; what is left is compared with what a serial run left.
"""

from __future__ import annotations

import argparse
import datetime
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.context import ForkProcess
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "benchmarks")]

os.environ |= {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "HF_HUB_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "RAY_USAGE_STATS_ENABLED": "0",
    # A token of this campaign's own: Ray would keep one in the home folder.
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),
}

import ray  # noqa: E402, F401
import torch  # noqa: E402
from tables import write_section  # noqa: E402

import faithbench.run.loop  # noqa: E402, F401
from tests.support.jobs import content  # noqa: E402

torch.set_num_threads(1)

TEXTS, PER_CHUNK, PAUSE = 48, 2, 0.4
"""Examples of a run and of its chunks, and seconds for which a chunk sleeps."""
EXPLAINERS = ("fragile", "attention", "random")
CELLS = TEXTS * len(EXPLAINERS)
PATIENCE = 300.0
"""Seconds after which a command counts as one that never ends."""
SILENCE = {"processes": 5, "ray": 90}
"""Seconds after which a worker counts as hung; on Ray they include the loading of weights."""
MOST_TRIALS = 3
"""How often a round is tried whose run ends before it is struck."""
HEAD, OTHER, PORT = "127.0.0.2", "127.0.0.3", 46380

PLUGIN = '''
import os
import resource
import signal
import time
from dataclasses import dataclass
from pathlib import Path

import torch

import faithbench

FOLDER = Path({folder!r})


@faithbench.explainer("fragile")
@dataclass(frozen=True)
class Fragile:
    """Score tokens by their position."""

    def __call__(self, session, batch):
        if len(batch.ids) > 1:  # not the one text that warms up the driver
            with open(FOLDER / "explained", "a") as file:
                file.write(f"{{len(batch.ids)}}\\n")
            misbehave()
            time.sleep({pause})
        return torch.arange(batch.ids.shape[1], dtype=torch.float64).expand(batch.ids.shape)


def misbehave():
    try:
        (FOLDER / "fault").rename(FOLDER / "struck")  # so that one worker gets it
    except FileNotFoundError:
        return
    fault = (FOLDER / "struck").read_text()
    if fault == "memory":
        resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        torch.ones(1 << 32)
    elif fault == "sleep":
        time.sleep(3600)
    else:
        os.kill(os.getpid(), getattr(signal, fault))
'''


class TooLateError(Exception):
    """A run ended before it was struck, which says nothing: the round is done again."""


class Bench:
    """A folder with a model, the plugin and what a serial run left; and one run at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plugin = folder / "fragile.py"
        self.plugin.write_text(PLUGIN.format(folder=str(folder), pause=PAUSE))
        _save_tiny_model(folder / "model")
        self.results = folder / "serial"
        self.finish(self.start("processes:jobs=1"))
        self.expected = content(self.results)

    def start(self, backend: str) -> ForkProcess:
        """Start a run that writes to the results of this round, or continues there."""
        words = f"run --task sst2 --source bundled --limit {TEXTS} --metrics aopc --seeds 1"
        words += f" --no-human --device cpu --batch {PER_CHUNK} --explainer {','.join(EXPLAINERS)}"
        words += f" --model {self.folder}/model --plugin {self.plugin} --results {self.results}"
        run = get_context("fork").Process(
            target=_command, args=([*words.split(), "--backend", backend], self.folder)
        )
        run.start()
        return run

    def finish(self, run: ForkProcess) -> None:
        """Wait for the end of a run, which must be a good one."""
        run.join(PATIENCE)
        if run.exitcode != 0:
            end_tree(run.pid)
            raise RuntimeError(f"ended with {run.exitcode}: {self.output()}")

    def wait_until(self, run: ForkProcess, condition: Callable[[], bool]) -> None:
        """Wait for a condition, while a run goes on."""
        end = time.monotonic() + PATIENCE
        while not condition():
            if not run.is_alive() or time.monotonic() > end:
                end_tree(run.pid)
                raise TooLateError(f"too late to strike: {self.output()}")
            time.sleep(0.02)

    def output(self) -> str:
        """Return the end of what the last command printed."""
        return (self.folder / "output").read_text()[-600:]

    def kept(self) -> int:
        """Return how many examples the run has kept so far."""
        files = list(self.results.rglob(".partial/*.rows.jsonl"))
        rows = [len(path.read_bytes().splitlines()) - 1 for path in files]
        return max(0, min(rows)) if len(rows) == len(EXPLAINERS) else 0

    def explained(self) -> int:
        """Return how many texts workers have explained, those of lost ones included."""
        return sum(map(int, (self.folder / "explained").read_text().split()))

    def clear(self) -> None:
        """Make ready for another round."""
        self.results = self.folder / secrets.token_hex(4)
        for name in ("explained", "fault", "struck"):
            (self.folder / name).unlink(missing_ok=True)


class Cluster:
    """Ray's head and another node, each with one CPU, on loopback addresses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._head = self._start("--head", f"--port={PORT}", f"--node-ip-address={HEAD}")
        self._other: subprocess.Popen[bytes] | None = None

    def other(self) -> int:
        """Return the process of the second node; start one if there is none."""
        if self._other is None or self._other.poll() is not None:
            words = (f"--address={HEAD}:{PORT}", f"--node-ip-address={OTHER}")
            self._other = self._start(*words)
        return self._other.pid

    def lose_other(self) -> None:
        """End the whole process tree of the second node."""
        end_tree(self.other())
        assert self._other is not None
        self._other.wait()

    def works_on_other(self) -> bool:
        """Return whether an actor computes on the second node."""
        names = (_name(child) for child in psutil.Process(self.other()).children(recursive=True))
        return any(name.startswith("ray::Worker.compute") for name in names)

    def close(self) -> None:
        """End both nodes."""
        for node in (self._other, self._head):
            if node is not None:
                end_tree(node.pid)
                node.wait()

    def _start(self, *words: str) -> subprocess.Popen[bytes]:
        program = Path(sys.executable).parent / "ray"
        command = [program, "start", *words, "--num-cpus=1", "--object-store-memory=100000000"]
        if "--head" in words:
            command += ["--include-dashboard=false", f"--temp-dir={self._folder / 'ray'}"]
        log = self._folder / f"{'head' if '--head' in words else 'other'}.log"
        node = subprocess.Popen(
            [*command, "--block"],
            stdout=log.open("w"),
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        end = time.monotonic() + PATIENCE
        while "will now block" not in log.read_text():
            if node.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"no Ray node started: {log.read_text()[-600:]}")
            time.sleep(0.1)
        return node


@dataclass
class Case:
    """A fault of a backend, and what became of the runs that it struck.

    `strike` runs, strikes in the round of a number, and returns when the run has ended well.
    """

    name: str
    strike: Callable[[Bench, Cluster, int], None]
    rounds: int
    struck: int = 0
    complete: int = 0
    twice: int = 0
    same: int = 0
    again: int = 0
    seconds: float = 0.0
    troubles: list[str] = field(default_factory=list)

    def run(self, bench: Bench, cluster: Cluster) -> None:
        """Strike in every round, and count what the runs left."""
        for number in [n for n in range(self.rounds) for _ in range(MOST_TRIALS)]:
            if number < self.struck + len(self.troubles):
                continue
            bench.clear()
            start = time.monotonic()
            try:
                self.strike(bench, cluster, number)
            except TooLateError as error:
                print(f"{self.name}, round {number + 1}: {str(error)[:40]}", flush=True)
                continue
            except RuntimeError as error:
                self.troubles.append(str(error))
                print(f"{self.name}: {error}", flush=True)
                continue
            took = time.monotonic() - start
            self.seconds = max(self.seconds, took)
            self.struck += 1
            files = sorted(bench.results.rglob("*.rows.jsonl*"))
            left = content(bench.results)
            ids = [(path.name, id_) for path in files for id_ in _ids(path)]
            self.complete += len(set(ids)) == CELLS
            self.twice += len(ids) - len(set(ids))
            self.same += left == bench.expected
            self.again += bench.explained() - TEXTS
            print(f"{self.name}, round {number + 1}: {took:.0f} s", flush=True)

    def line(self) -> list[object]:
        """Return the table's line."""
        return [
            self.name,
            f"{self.struck} of {self.rounds}",
            self.complete,
            self.twice,
            self.same,
            f"{self.again / max(1, self.struck):.1f}",
            f"{self.seconds:.0f} s",
        ]


def node_lost(bench: Bench, cluster: Cluster, number: int) -> None:
    """Kill a node while an actor computes there, later in each round."""
    cluster.other()
    run = bench.start(_ray_at_cluster())
    bench.wait_until(run, lambda: cluster.works_on_other() and bench.kept() >= 2 * number)
    time.sleep(0.25 * number)  # so that rounds end in the midst of different chunks
    cluster.lose_other()
    bench.finish(run)


def worker_fault(backend: str, fault: str) -> Callable[[Bench, Cluster, int], None]:
    """Return a strike by which a worker does what a fault says, somewhere in the run."""

    def strike(bench: Bench, cluster: Cluster, number: int) -> None:
        if backend == "ray":
            cluster.other()
        run = bench.start(_with_timeout(backend, bench))
        bench.wait_until(run, lambda: bench.kept() >= 4 * number)
        (bench.folder / "fault").write_text(fault)
        bench.finish(run)
        if not (bench.folder / "struck").exists():
            raise TooLateError("no worker took the fault")

    return strike


def driver_killed(backend: str) -> Callable[[Bench, Cluster, int], None]:
    """Return a strike that kills the driver alone, and starts the same command again."""

    def strike(bench: Bench, cluster: Cluster, number: int) -> None:
        if backend == "ray":
            cluster.other()
        run = bench.start(_with_timeout(backend, bench))
        bench.wait_until(run, lambda: bench.kept() >= 2 + 12 * number)
        workers = psutil.Process(run.pid).children(recursive=True)
        run.kill()
        run.join()
        bench.finish(bench.start(_with_timeout(backend, bench)))
        if backend == "slurm":
            return  # its tasks are the queue's, and end when they are done
        _, left = psutil.wait_procs(workers, 60)
        if left:
            names = ", ".join(_name(process) for process in left)
            raise RuntimeError(f"{len(left)} workers outlive the driver: {names}")

    return strike


def cases(nodes: int, rounds: int) -> Iterator[Case]:
    """Yield all cases."""
    yield Case("Ray: one of two nodes killed with all its processes", node_lost, nodes)
    titles = {"processes": "processes", "ray": "Ray"}
    faults = {
        "memory": "a worker runs out of memory",
        "SIGKILL": "a worker is killed, as for lack of memory",
        "sleep": "a worker hangs",
        "SIGSTOP": "a worker is stopped",
    }
    for backend, title in titles.items():
        for fault, what in faults.items():
            yield Case(f"{title}: {what}", worker_fault(backend, fault), rounds)
        yield Case(
            f"{title}: the driver is killed and started again", driver_killed(backend), rounds
        )
    yield Case(
        "Ray on its own: the driver is killed and started again", driver_killed("own ray"), rounds
    )
    yield Case("Slurm (local): a task is killed", worker_fault("slurm", "SIGKILL"), rounds)
    yield Case(
        "Slurm (local): the driver is killed and started again", driver_killed("slurm"), rounds
    )


def _with_timeout(backend: str, bench: Bench) -> str:
    if backend == "slurm":
        return f"slurm:cluster=local,folder={bench.folder}/slurm,minutes=5,poll=0.2,jobs=2"
    if backend == "own ray":
        return "ray:jobs=2"
    if backend == "ray":
        return f"{_ray_at_cluster()},timeout={SILENCE['ray']}"
    return f"processes:jobs=2,timeout={SILENCE['processes']}"


def _ray_at_cluster() -> str:
    return f"ray:address={HEAD}:{PORT},jobs=2"


def end_tree(process: int | None) -> None:
    """Kill a process with all its children, and theirs."""
    try:
        parent = psutil.Process(process)
        tree = [parent, *parent.children(recursive=True)]
    except psutil.NoSuchProcess:
        return
    for one in tree:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue


def _command(words: list[str], folder: Path) -> None:
    """Run faithbench in this forked process, which has imported everything."""
    from faithbench.cli import app
    from faithbench.run.backends import slurm

    output = os.open(folder / "output", os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.chdir(folder)
    slurm.GROUP_WORK, slurm.MOST_TASKS = 0.0, 6  # several tasks, though there is little work
    sys.argv = ["faithbench", *words]
    app.main()


def _name(process: psutil.Process) -> str:
    try:
        return " ".join(process.cmdline())
    except (psutil.NoSuchProcess, psutil.ZombieProcess):
        return ""


def _ids(path: Path) -> list[str]:
    from faithbench.records.rows_file import read_rows

    return [row.id for row in read_rows(path)]


def _save_tiny_model(folder: Path) -> None:
    from faithbench.testing.tiny import tiny_model

    model = tiny_model()
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)


@contextmanager
def opened_cluster(folder: Path) -> Iterator[Cluster]:
    """Start the two nodes, and end them."""
    cluster = Cluster(folder)
    try:
        yield cluster
    finally:
        cluster.close()


def main() -> None:
    """Run all cases, and write the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--nodes", type=int, default=10, help="rounds in which a node is lost")
    parser.add_argument("--rounds", type=int, default=2, help="rounds of every other fault")
    parser.add_argument("--only", default="", help="cases whose name has this word")
    parser.add_argument("--only-print", action="store_true", help="leave RESULTS.md as it is")
    options = parser.parse_args()
    chosen = [one for one in cases(options.nodes, options.rounds) if options.only in one.name]
    command = (
        f"python benchmarks/campaigns/backends.py --nodes {options.nodes} --rounds {options.rounds}"
    )
    # The sockets of Ray have paths of 107 bytes at most.
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="fb") as name:
        bench = Bench(Path(name))
        with opened_cluster(Path(name)) as cluster:
            for number, case in enumerate(chosen):
                case.run(bench, cluster)
                body = section(chosen[: number + 1])
                if not options.only_print:  # at once, since a campaign may be stopped
                    write_section("Faults of backends", command, body)
    if options.only_print:
        print(body)


def section(chosen: list[Case]) -> str:
    """Return the text and the table of the campaign."""
    from tabulate import tabulate

    headers = ["fault", "struck", "all cells done", "done twice", "same bytes", "texts again"]
    table = tabulate(
        [case.line() for case in chosen], headers=[*headers, "longest"], tablefmt="github"
    )
    today = datetime.datetime.now(datetime.UTC).date()
    text = (
        f"Each round is a run of {TEXTS} texts by {len(EXPLAINERS)} explainers ({CELLS} cells) "
        "with two workers, struck once. Same bytes: records and rows are those of a serial run, "
        "but for times. Texts again: explained once more, as their worker was lost, on average. "
        f"Longest: wall clock on a machine that others use too ({today})."
    )
    troubles = [f"- {case.name}: {what}" for case in chosen for what in case.troubles]
    return "\n\n".join([text, str(table), *troubles])


if __name__ == "__main__":
    main()
