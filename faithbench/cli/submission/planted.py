"""The command `submission planted`: do explainers find the one word that decides?"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from faithbench.cli.help.command import WHAT
from faithbench.cli.submission.options import (
    AllowUnconfined,
    Folders,
    Memory,
    Root,
    Seconds,
    Strict,
)
from faithbench.cli.submission.run import (
    checked_entry,
    find_submissions,
    limits_reporter,
    named,
    print_failure,
)
from faithbench.core.errors import FaithbenchError

if TYPE_CHECKING:
    from faithbench.submissions.measure import Setup

STEPS = 200
"""Number of training steps of the model: it then is right on every text."""
LEVEL = 0.01
"""Largest p value of a share that counts as better than chance."""


def plant_words(
    folders: Folders,
    texts: Annotated[
        int,
        typer.Option(
            min=20, max=1000, metavar="N", help="Number of texts to make up.", rich_help_panel=WHAT
        ),
    ] = 100,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            help="Repeat a trial; by default each one is new.",
            rich_help_panel=WHAT,
        ),
    ] = None,
    seconds: Seconds = 600,
    memory: Memory = 4096,
    strict: Strict = False,
    allow_unconfined: AllowUnconfined = False,
    root: Root = Path("submissions"),
) -> None:
    """See whether submitted explainers find a planted word.

    One word of each text decides what a tiny model predicts. Model and texts are made anew for
    each trial, so that nobody has seen them before. An explainer passes if it puts that word
    first more often than chance does (p < .01).
    """
    from faithbench.cli.display import progress_on
    from faithbench.core.files import temporary_folder
    from faithbench.submissions.measure import ask_scores
    from faithbench.submissions.sandbox.confine import Limits
    from faithbench.testing.planted import chance_of_first

    console = Console(highlight=False, soft_wrap=True)
    wanted = find_submissions(folders, root, "plugin")
    chosen = secrets.randbelow(1 << 31) if seed is None else seed
    report_limits = limits_reporter(console, strict=strict, allow_unconfined=allow_unconfined)
    failed = 0
    with temporary_folder() as home:
        with console.status("training a model"):
            setup = planted_setup(home, texts, chosen)
        chance = chance_of_first(setup.data)
        console.print(f"{texts} new texts (--seed {chosen}); by chance: {chance:.1%}")
        for folder in wanted:
            try:
                entry = checked_entry(folder, "plugin")
                with progress_on(console) as progress:
                    limits = Limits(seconds, memory)
                    scores, _ = ask_scores(folder, entry, setup, limits, report_limits, progress)
            except FaithbenchError as error:
                failed += 1
                print_failure(console, named(folder, error))
                continue
            found = words_found(setup, {key: lists[0] for key, lists in scores.items()})
            passed = is_better_than_chance(found, texts, chance)
            failed += not passed
            verdict = "passes" if passed else "not better than chance"
            console.print(
                Text(f"{folder.name}: planted word first on {found / texts:.0%}, {verdict}")
            )
    if failed:
        raise FaithbenchError(f"{failed} of {len(wanted)} submissions did not pass; see above")


def planted_setup(folder: Path, texts: int, seed: int) -> Setup:
    """Train the model into a folder, and make up the texts."""
    from faithbench.models.encoding import encode
    from faithbench.models.session import Session
    from faithbench.submissions.measure import Setup
    from faithbench.testing.planted import planted_data, saved_model

    model = saved_model(folder, seed, STEPS)
    data = planted_data(texts, seed + 1)
    encodings = tuple(encode(model, example, data.task.evidence) for example in data.examples)
    return Setup(data, Session(model), encodings)


def words_found(setup: Setup, scores: dict[str, tuple[float, ...]]) -> int:
    """Return the number of texts on which the planted word alone has the highest score."""
    from faithbench.testing.planted import puts_first

    tokenizer = setup.model.tokenizer
    return sum(
        puts_first(
            tokenizer.convert_ids_to_tokens(encoding.ids[encoding.erasable].tolist()),
            scores[encoding.example.id],
        )
        for encoding in setup.encodings
    )


def is_better_than_chance(found: int, texts: int, chance: float) -> bool:
    """Return whether so many words are hardly found by chance."""
    from scipy.stats import binomtest

    return bool(binomtest(found, texts, chance, alternative="greater").pvalue < LEVEL)
