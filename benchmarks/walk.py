"""Walk `faithbench run` as data: which file calls which, and whether calls go down the rooms.

    python benchmarks/walk.py

Traces a small run with a profiler, maps every file to its room, and fails if a call goes up in
the order of rooms that pyproject.toml holds. Calls of what was handed down are no climbing: a
progress callback, the neighbours that a metric of the run asks for, a function given to a pool.
"""

from __future__ import annotations

import sys
import tempfile
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "faithbench"

# Functions that a room above hands down to be called back, by file and name.
HANDED_DOWN = {
    ("cli/display.py", "report"),
    ("run/neighbours.py", "__call__"),
    ("run/neighbours.py", "compute"),
    # A task kind reads the network through the engine that it is given.
    ("models/engine.py", "log_probabilities"),
}


@dataclass
class Walk:
    """The calls between files of the package, and the functions that were visited."""

    functions: set[tuple[str, str]] = field(default_factory=set)
    calls: set[tuple[str, str, str]] = field(default_factory=set)

    @property
    def files(self) -> set[str]:
        """The files that were visited."""
        return {file for file, _ in self.functions}

    @property
    def rooms(self) -> set[str]:
        """The rooms that were visited."""
        return {room_of(file) for file in self.files}

    def upward(self, order: list[str]) -> list[str]:
        """Return the calls that go up in an order of rooms, lowest first, and are not allowed."""
        found = []
        for caller, callee, function in sorted(self.calls):
            here, there = room_of(caller), room_of(callee)
            if here not in order or there not in order or (callee, function) in HANDED_DOWN:
                continue
            if order.index(there) > order.index(here):
                found.append(f"{caller} -> {callee}:{function}")
        return found


def room_of(file: str) -> str:
    """Return the room of a file, given by its path below the package."""
    return file.split("/", maxsplit=1)[0]


def rooms_in_order() -> list[str]:
    """Return the rooms, lowest first, as the contract in pyproject.toml has them."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    (layers,) = (c["layers"] for c in contracts["contracts"] if c["type"] == "layers")
    return layers[::-1]


def walk(work: Callable[[], object]) -> Walk:
    """Do some work, and return how it walked through the package."""
    seen = Walk()
    prefix = str(PACKAGE) + "/"

    def watch(frame: FrameType, event: str, _argument: object) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(prefix):
            return
        name = frame.f_code.co_name
        # Class bodies, comprehensions and lambdas have no name that one would look for.
        if name.startswith("<"):
            return
        file = frame.f_code.co_filename.removeprefix(prefix)
        seen.functions.add((file, name))
        caller = frame.f_back
        # What a library calls for us is called by whoever called the library.
        while caller is not None and not caller.f_code.co_filename.startswith(prefix):
            caller = caller.f_back
        if caller is not None:
            above = caller.f_code.co_filename.removeprefix(prefix)
            if above != file:
                seen.calls.add((above, file, name))

    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(None)
    return seen


def main() -> None:
    """Walk a run of four bundled sentences, and print what was seen."""
    from faithbench.cli.app import app

    words = "run --explainer lrp-mask --task sst2 --source bundled --limit 4 --metrics aopc"
    with tempfile.TemporaryDirectory() as results:
        seen = walk(lambda: app([*words.split(), "--results", results], standalone_mode=False))
    climbing = seen.upward(rooms_in_order())
    print(
        f"\n{len(seen.functions)} functions in {len(seen.files)} files of {len(seen.rooms)} rooms, "
        f"{len({(a, b) for a, b, _ in seen.calls})} calls from file to file, "
        f"{len(climbing)} of them upward"
    )
    for call in climbing:
        print(f"  {call}")
    sys.exit(1 if climbing else 0)


if __name__ == "__main__":
    main()
