"""Flip bits of every kind of file that the suite reads, or cut files short, and read them again.

    python -m benchmarks.campaigns.flips --out FOLDER [--each 250] [--seed 0]

A file that is refused in one line, read as before, or left out to be made again is fine; so is one
whose numbers changed along with the digest that it is known by, since nothing compares it with the
former one. Another number under the same name is a finding. Files that people write by hand, such
as tasks and plans, have no checksum: what a changed letter means there is theirs to say, and the
table counts how often one was accepted.
"""

from __future__ import annotations

import argparse
import random
from pathlib import Path

from benchmarks.campaigns.readers import Reader, Reading, make_files, readers
from benchmarks.campaigns.trials import (
    Campaign,
    alarm,
    cpu_seconds,
    draws,
    load_libraries,
    write_campaign,
)
from faithbench.core.errors import FaithbenchError

FINE = ("refused", "as before", "left out", "known by another digest", "text of people")


def damaged(data: bytes, random: random.Random) -> tuple[str, bytes]:
    """Return data with a bit flipped or, once in ten, cut short."""
    if random.random() < 0.1:
        size = random.randrange(len(data))
        return f"cut to {size} bytes", data[:size]
    bit = random.randrange(8 * len(data))
    copy = bytearray(data)
    copy[bit // 8] ^= 1 << bit % 8
    return f"bit {bit}", bytes(copy)


def verdict_of(reader: Reader, before: Reading) -> tuple[str, str]:
    """Read a damaged file and say what became of it."""
    try:
        with alarm(20):
            after = reader.read()
    except FaithbenchError as error:
        line = str(error)
        return ("refused", "") if "\n" not in line else ("more than a line", line[:200])
    except TimeoutError:
        return "hangs", ""
    except Exception as error:
        return "traceback", f"{type(error).__name__}: {error}"[:200]
    return _compared(reader, before, after), ""


def _compared(reader: Reader, before: Reading, after: Reading) -> str:
    if before.parts is not None and after.parts is not None:
        same = all(before.parts.get(key) == value for key, value in after.parts.items())
        whole = len(after.parts) == len(before.parts)
        return "another number" if not same else "as before" if whole else "left out"
    if after.value == before.value:
        return "as before"
    if after.name != before.name:
        return "known by another digest"
    return "text of people" if reader.by_hand else "another number"


def run_flips(campaign: Campaign, files: list[Reader], each: int, seed: int) -> None:
    """Damage each kind of file so many times."""
    for reader in files:
        data, before = reader.file.read_bytes(), reader.read()
        numbers = draws("flips", reader.kind, seed)
        try:
            for number in range(each):
                what, changed = damaged(data, numbers)
                trial = f"{seed}.{number}, {what}"
                if f"{reader.kind}/{trial}" in campaign.done:
                    continue
                reader.file.write_bytes(changed)
                verdict, detail = verdict_of(reader, before)
                campaign.add(reader.kind, trial, verdict, detail)
        finally:
            reader.file.write_bytes(data)


def main() -> None:
    """Run the campaign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--each", type=int, default=250)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", action="append", default=[])
    options = parser.parse_args()
    folder = options.out.resolve() / "files"
    load_libraries()
    make_files(folder, options.out.resolve() / "places")
    campaign = Campaign("flips", options.out / "flips.jsonl", FINE)
    chosen = [r for r in readers(folder) if not options.only or r.kind in options.only]
    run_flips(campaign, chosen, options.each, options.seed)
    write_campaign(
        campaign, "Flipped bits", "python -m benchmarks.campaigns.flips --out FOLDER",
        "One bit of a file is flipped, or the file is cut short, and it is read again.",
        cpu_seconds(),
    )  # fmt: skip


if __name__ == "__main__":
    main()
