"""Show which parts of speech an explainer finds important, on one model or on several.

    python benchmarks/parts_of_speech.py --task sst2 --model bundled:sst2 [--model FOLDER ...]
        [--explainer attention-x-gradient ...] [--limit 200] [--data <data folder>] [--jobs N]
        [--no-write]

As Appendix G and Figure 1 of SaLoss ("Enjoy the Salience", EMNLP 2021), with spaCy's tagger (extra
`heads`). A word's importance is the absolute score of its tokens, as a share of its text's; a tag
has the mean of its words in a text, and then over texts. Models are compared with the first one on
the same texts by the signed-rank test, with Holm over all tests of a table.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING

import numpy as np
from tabulate import tabulate

from faithbench.core.errors import FaithbenchError
from faithbench.stats.pairwise import holm
from faithbench.stats.signed_rank import signed_rank
from faithbench.studies.reproduction.measures.parts_of_speech import (
    Profile,
    Tagged,
    profile_of,
    tags_of,
)

if TYPE_CHECKING:
    from faithbench.data.dataset import Dataset
    from faithbench.data.tasks import Task
    from faithbench.models.model import Model

EXPLAINER = "attention-x-gradient"
"""The explainer of the paper's Figure 1."""
CHEAPEST = "fi_entropy"
"""A metric that erases nothing: only the scores are wanted."""


def table_of(profiles: Mapping[str, Profile]) -> str:
    """Return a line per tag, the commonest first: its importance on each model, and the tests."""
    first, *others = profiles
    words = profiles[first].words
    tags = sorted(words, key=lambda tag: (-words[tag], tag))
    tests = {
        (tag, other): signed_rank(
            *([of.get(tag) for of in profiles[name].shares] for name in (other, first))
        )
        for tag in tags
        for other in others
    }
    tested = [key for key, test in tests.items() if test.p is not None]
    adjusted = dict(zip(tested, holm([tests[key].p or 0.0 for key in tested]), strict=True))
    lines = []
    for tag in tags:
        means = {name: _mean(profile, tag) for name, profile in profiles.items()}
        line: list[object] = [tag, words[tag], *(_percent(mean) for mean in means.values())]
        for other in others:
            line += [_difference(means[other], means[first]), _p(adjusted.get((tag, other)))]
        lines.append(line)
    compared = [head for other in others for head in (f"{other} - {first}", "p (Holm)")]
    # Without numbers parsed, so that "-" and "+0.10" stay as they are.
    return tabulate(lines, ["tag", "words", *profiles, *compared], "github", disable_numparse=True)


def _mean(profile: Profile, tag: str) -> float | None:
    present = [shares[tag] for shares in profile.shares if tag in shares]
    return fmean(present) if present else None


def _percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.2f}%"


def _difference(one: float | None, other: float | None) -> str:
    return "-" if one is None or other is None else f"{100 * (one - other):+.2f}"


def _p(p: float | None) -> str:
    if p is None:
        return "-"
    return "<.0001" if p < 0.0001 else f"{p:.4f}".lstrip("0")


def measure(
    task: str | Task,
    models: Mapping[str, str | Model],
    explainer: str,
    *,
    limit: int | None = None,
    data: Path | Dataset | None = None,
    jobs: int | None = None,
) -> dict[str, Profile]:
    """Explain the same texts on each model, and return their profiles by the models' names."""
    from faithbench import evaluate
    from faithbench.models.encoding import encode

    profiles: dict[str, Profile] = {}
    tagged: list[Tagged] = []
    for name, model in models.items():
        found = evaluate(
            task, explainer, model=model, data=data, limit=limit, metrics=CHEAPEST, seeds=1,
            human=False, jobs=jobs, progress=_report,
        )  # fmt: skip
        evidence = found.data.task.evidence
        if evidence != "text":
            raise FaithbenchError(
                f"task {found.data.task.name} explains {evidence}; parts of speech are tagged in "
                "tasks whose evidence is the text"
            )
        (outcome,) = found.outcomes
        tagged = tagged or tags_of(example.text for example in found.data.examples)
        encodings = [encode(found.model, example, evidence) for example in found.data.examples]
        scores = [np.array(row.scores) for row in outcome.rows]
        profiles[name] = profile_of(encodings, scores, tagged)
    return profiles


def _report(what: str, done: int, total: int) -> None:
    if total and done == total:
        print(f"{what}: {done}", file=sys.stderr)


def main() -> None:
    """Measure, print, and keep the tables in RESULTS.md."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--task", default="sst2")
    parser.add_argument("--model", action="append", required=True)
    parser.add_argument("--explainer", action="append")
    parser.add_argument("--limit", type=int, default=200)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--no-write", action="store_true")
    options = parser.parse_args()
    # A folder goes by its own name: where it lies is nobody's business.
    models = {Path(name).name if Path(name).is_dir() else name: name for name in options.model}
    if len(models) < len(options.model):
        parser.error("two models have the same name; rename one of their folders")
    explainers = options.explainer or [EXPLAINER]
    parts = []
    try:
        for explainer in explainers:
            profiles = measure(
                options.task, models, explainer,
                limit=options.limit, data=options.data, jobs=options.jobs,
            )  # fmt: skip
            parts.append(f"`{explainer}`:\n\n{table_of(profiles)}")
    except FaithbenchError as error:
        sys.exit(f"Error: {error}")
    body = "\n\n".join(
        [
            "Mean share of a text's absolute scores that a word of each tag has; words are counted "
            "on the first model.",
            *parts,
        ]
    )
    if options.no_write:
        print(body)
        return
    from tables import write_section

    command = (
        f"python benchmarks/parts_of_speech.py --task {options.task}"
        + "".join(f" --model {name}" for name in models)
        + "".join(f" --explainer {name}" for name in options.explainer or [])
        + f" --limit {options.limit}"
        + (" --data <data folder>" if options.data else "")
    )
    write_section(f"Parts of speech ({options.task})", command, body, timed=False)


if __name__ == "__main__":
    main()
