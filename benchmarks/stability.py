"""Overlap with neighbours against chance: which correction leaves controls at 0.

Reads the rows of a results folder of `faithbench run` (all explainers of one table, with scores of
all texts), and computes the raw overlap and each candidate for a correction. A good one has an
interval around 0 for `random`, no correlation over explainers with the share of stop-words and
punctuation among their top 30% words, and the controls at the low end.

Run: python benchmarks/stability.py RESULTS --task sst2 --data <data folder> --limit 200
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr
from tables import write_section
from tabulate import tabulate

from faithbench.core.erasure import top_count
from faithbench.core.types import Encoding, Example, Floats, rank
from faithbench.data.words import is_content_word
from faithbench.explainers.registry import is_control
from faithbench.metrics.neighbours import Neighbours
from faithbench.metrics.overlap import (
    Marked,
    above_chance,
    iou,
    marked_text,
    mean_of_known,
    mean_over_neighbours,
)
from faithbench.metrics.stability import (
    iou_of_labels,
    label_marks,
    labelled_words,
    top_marks,
    top_words,
)
from faithbench.metrics.word_scores import WordScores, words_of
from faithbench.models.encoding import encode
from faithbench.records.rows import ResultRow
from faithbench.records.store import StoredRecord, stored_records
from faithbench.run.neighbours import Nearest
from faithbench.run.request import Request, make_job
from faithbench.stats.summaries import summarise

ARBITRARY = 10
"""Number of texts of the same class, drawn once for each text, that stand for any of them."""
CANDIDATES = (
    "raw, all words (version 1)",
    "raw, content words",
    "content, minus other texts of the class",
    "content, minus both shuffled",
    "content, minus both shuffled, minus the same of other texts",
    "content, minus one shuffled (version 2)",
    "the same, pairs without a shared content word left out",
)

_OTHER = "raw, other texts"

Column = list[float | None]


def main() -> None:
    """Compute all candidates and write the tables."""
    parser = argparse.ArgumentParser()
    parser.add_argument("results", type=Path)
    parser.add_argument("--task", default="sst2")
    parser.add_argument("--data", type=Path)
    parser.add_argument("--limit", type=int, default=200)
    options = parser.parse_args()
    records = {r.record.explainer.name: r for r in stored_records(options.results, options.task)}
    job = make_job(
        Request("random", options.task, data=options.data, limit=options.limit,
                metrics="iou_semantic", results=options.results)
    )  # fmt: skip
    encodings = [encode(job.model, e, job.data.task.evidence) for e in job.data.examples]
    rows = {name: _rows(stored, encodings) for name, stored in records.items()}
    targets = [row.target for row in next(iter(rows.values()))]
    near = Nearest(job.data, options.results, targets, None, "cpu", lambda *_: None)
    arbitrary = _arbitrary(targets)
    # Of each kind and candidate a column per explainer; `_OTHER` is with texts of the class.
    values: dict[str, dict[str, list[Column]]] = {}
    shares: dict[str, float] = {}
    for name, own in rows.items():
        seeds = [_words(encodings, own, seed) for seed in range(1 + len(own[0].more_scores))]
        shares[name] = _share_of_function_words(seeds[0])
        for kind in ("semantic", "lexical", "labels"):
            nearest = near("lexical" if kind == "lexical" else "semantic")
            by_seed = [_candidates(job.data.examples, s, kind, nearest, arbitrary) for s in seeds]
            for candidate in (*CANDIDATES, _OTHER):
                columns = [one[candidate] for one in by_seed]
                values.setdefault(kind, {}).setdefault(candidate, []).append(_mean(columns))
    body = [
        f"{len(rows)} explainers on {len(encodings)} texts of {options.task}. `random`: 95% "
        "interval of its mean. Function words: Spearman correlation over explainers with the share "
        "of stop-words and punctuation among the top 30% words. Other texts: the same with the "
        "raw overlap with other texts of the class. Places count from the lowest."
    ]
    for kind, candidates in values.items():
        body.append(f"### `iou_{kind}`\n\n" + _table(candidates, list(rows), shares))
    command = "python benchmarks/stability.py RESULTS --task {0} --data <data folder> --limit {1}"
    write_section(
        f"Stability above chance ({options.task})",
        command.format(options.task, options.limit),
        "\n\n".join(body),
    )


def _rows(stored: StoredRecord, encodings: Sequence[Encoding]) -> list[ResultRow]:
    """Return a record's rows in the order of the texts, refusing rows without scores."""
    by_id = {row.id: row for row in stored.rows}
    rows = [by_id[encoding.example.id] for encoding in encodings]
    if not all(row.scores for row in rows):
        raise SystemExit(f"{stored.path} keeps scores of some texts only; give unpublished results")
    return rows


def _words(encodings: Sequence[Encoding], rows: Sequence[ResultRow], seed: int) -> list[WordScores]:
    scores = [np.array((row.scores, *row.more_scores)[seed]) for row in rows]
    return [words_of(encoding, own) for encoding, own in zip(encodings, scores, strict=True)]


def _share_of_function_words(texts: Sequence[WordScores]) -> float:
    """Return the mean share of stop-words and punctuation among the top 30% words by place."""
    shares = []
    for words in texts:
        best = rank(words.scores)[: top_count(len(words.strings), 30)]
        shares.append(np.mean([not is_content_word(words.strings[i]) for i in best]))
    return float(np.mean(shares))


def _arbitrary(targets: Sequence[object]) -> Neighbours:
    """Draw other texts of each text's predicted class."""
    draw = np.random.default_rng(1)
    others = [
        [j for j, target in enumerate(targets) if target == own and j != i]
        for i, own in enumerate(targets)
    ]
    return tuple(tuple(draw.permutation(of)[:ARBITRARY].tolist()) for of in others)


def _candidates(
    examples: Sequence[Example],
    texts: Sequence[WordScores],
    kind: str,
    near: Neighbours,
    other: Neighbours,
) -> dict[str, Column]:
    """Return each candidate's value for each text."""
    mark = label_marks if kind == "labels" else top_marks
    marked = [
        marked_text(example.id, words, mark) for example, words in zip(examples, texts, strict=True)
    ]
    if kind == "labels":
        labelled = [labelled_words(w.strings, w.scores) for w in texts]
        raw = partial(mean_over_neighbours, labelled, compare=iou_of_labels)
    else:
        tops = [top_words(w.strings, w.scores) for w in texts]
        raw = partial(mean_over_neighbours, tops, compare=iou)
    strings = [{w for w in words.strings if is_content_word(w)} for words in texts]
    sharing = tuple(tuple(j for j in of if strings[i] & strings[j]) for i, of in enumerate(near))
    content, both = _mean_over(marked, _own), _mean_over(marked, _both_shuffled)
    columns = [
        raw(near),
        content(near),
        _minus(content(near), content(other)),
        both(near),
        _minus(both(near), both(other)),
        _mean_over(marked, above_chance)(near),
        _mean_over(marked, above_chance)(sharing),
    ]
    return dict(zip((*CANDIDATES, _OTHER), [*columns, raw(other)], strict=True))


def _mean_over(
    marked: Sequence[Marked], compare: Callable[[Marked, Marked], float | None]
) -> Callable[[Neighbours], Column]:
    return lambda neighbours: mean_over_neighbours(marked, neighbours, compare)


def _own(a: Marked, b: Marked) -> float | None:
    return iou(a.own, b.own) if a.own and b.own else None


def _both_shuffled(a: Marked, b: Marked) -> float | None:
    """Return the overlap minus that of two texts whose marks are shuffled alike."""
    overlap = _own(a, b)
    chance = mean_of_known([iou(x, y) for x, y in zip(a.shuffled, b.shuffled, strict=True)])
    return None if overlap is None else overlap - (chance or 0.0)


def _minus(a: Column, b: Column) -> Column:
    pairs = zip(a, b, strict=True)
    return [None if x is None or y is None else x - y for x, y in pairs]


def _mean(columns: Sequence[Column]) -> Column:
    """Return the mean over seeds."""
    return [mean_of_known(values) for values in zip(*columns, strict=True)]


def _table(
    candidates: dict[str, list[Column]], names: Sequence[str], shares: dict[str, float]
) -> str:
    """Return a line per candidate: controls, and the correlations over explainers."""
    others = _means(candidates[_OTHER])
    lines = []
    for candidate in CANDIDATES:
        columns = candidates[candidate]
        means = _means(columns)
        _, interval, n, _ = summarise(columns[names.index("random")])
        order = [names[i] for i in np.argsort(means)]
        controls = [name for name in names if is_control(name)]
        places = ", ".join(f"{name} {order.index(name) + 1}" for name in controls)
        first = means[names.index("first-tokens")]
        lines.append(
            (
                candidate,
                n,
                "" if interval is None else f"{interval[0]:+.4f} to {interval[1]:+.4f}",
                f"{first:+.4f}",
                f"{spearmanr(means, [shares[name] for name in names])[0]:+.2f}",
                f"{spearmanr(means, others)[0]:+.2f}",
                f"{places} of {len(names)}",
                f"{min(means):+.3f} to {max(means):+.3f}",
            )
        )
    heads = ["candidate", "n", "`random`", "`first-tokens`", "function words", "other texts"]
    return tabulate([*lines], [*heads, "places of controls", "all explainers"], tablefmt="github")


def _means(columns: Sequence[Column]) -> Floats:
    """Return the mean of each explainer's values."""
    return np.array([np.mean([v for v in column if v is not None]) for column in columns])


if __name__ == "__main__":
    main()
