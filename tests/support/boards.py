"""Boards made from numbers that a seed gives: small, or of a real leaderboard's size."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from typing import Any, Final

from faithbench.explainers.registry import EXPLAINERS
from faithbench.leaderboard.board import (
    Board,
    BoardRow,
    Column,
    Family,
    Gap,
    Pair,
    Power,
    Score,
    ShownExample,
    Standing,
    Table,
)
from faithbench.leaderboard.operators import operator_pairs
from faithbench.leaderboard.rankings import counted_tables, pareto_of, ranking_of
from faithbench.leaderboard.standings import SHELVES, aspect_ranks, is_above, places_of
from faithbench.metrics.registry import METRICS as CATALOGUE

TASKS: Final = ("sst2", "agnews", "semeval", "movies", "imdb", "multirc", "evinf", "squad")
LONG: Final = {"movies", "imdb", "multirc", "evinf", "squad"}
METRICS: Final[dict[Family, dict[str, bool | None]]] = {
    "faithfulness": {
        "aopc": True, "lodds": False, "comprehensiveness": True, "sufficiency": False,
        "flip_fraction": False, "delta_log_odds": True, "delta_log_odds_neg": False,
        "agreement": True, "tau_loo": True, "fi_entropy": None,
    },
    "stability": {"iou_semantic": True, "iou_lexical": True, "iou_labels": True,
                  "seed_agreement": True, "max_sensitivity": False},
    "plausibility": {"auprc": True, "token_f1": True, "iou_f1": True, "saliency_accuracy": True,
                     "token_recall": True},
    "speed": {"seconds": False, "peak_memory": False, "forwards": False, "backwards": False,
              "forward_equivalents": False},
}  # fmt: skip
TEXT: Final = (
    "the film is a warm and often funny story about two brothers who never quite learn to talk "
    "yet its second half loses all of that charm , and I left with little more than a headache . "
    "still , nobody who loves old trains will want to miss it"
)
WORDS: Final = TEXT.split()


def full_board() -> Board:
    """Return a board of a real one's size: 8 tables, 28 explainers, 25 metrics, 8 texts each."""
    return make_board()


def small_board() -> Board:
    """Return a board of three tables, seven explainers and two texts each."""
    return make_board(tasks=TASKS[:3], explainers=7, shown=2)


def make_board(
    tasks: tuple[str, ...] = TASKS, explainers: int = 28, shown: int = 8, seed: int = 0
) -> Board:
    """Return a board of the size asked for; the first table's data are bundled, with proxies."""
    random = Random(seed)
    labels = _labels(explainers)
    power = {label: random.random() for label in labels} | {"random": 0.0}
    tables = tuple(_table(task, labels, power, shown, Random(f"{seed}{task}")) for task in tasks)
    ranking = ranking_of(counted_tables(tables))
    return Board(
        board_schema=3,
        digest="5" * 64,
        records=len(tables) * explainers,
        tables=tables,
        ranking=ranking,
        operators=operator_pairs(tables),
        pareto=pareto_of(ranking),
    )


def _labels(count: int) -> tuple[str, ...]:
    names = ["random", "lrp-mask", *sorted(set(EXPLAINERS) - {"random", "lrp-mask", "human"})]
    return tuple(f"{names[i % len(names)]}{':seed=1' * (i // len(names))}" for i in range(count))


def _table(
    task: str, labels: tuple[str, ...], power: dict[str, float], shown: int, random: Random
) -> Table:
    n = 50 if task in LONG else 200
    bundled = task == TASKS[0]
    standings = {label: _standing(label, power[label]) for label in labels}
    columns = tuple(
        _column(metric, family, better, standings, power, n, random, bundled)
        for family, metrics in METRICS.items()
        for metric, better in metrics.items()
    )
    ranks = aspect_ranks(columns, standings)
    places = places_of(ranks)
    rows = [_entrant(label, power[label], random) for label in labels]
    rows = [
        row.model_copy(
            update={
                "standing": standings[row.label],
                "aspects": ranks.get(row.label, {}),
                "place": places.get(row.label),
            }
        )
        for row in rows
    ]
    rows.sort(key=lambda row: (SHELVES.index(row.standing), row.place or 0.0))
    return Table(
        id=task, task=task, task_version=1, title=f"The {task} task",
        kind="qa" if task == "squad" else "classification",
        source="bundled" if bundled else "folder", split="test", n=n, data_sha256="d" * 64,
        model=f"bundled:{task}", model_sha256="w" * 64, model_known_by="files",
        dtype="float32", accuracy=0.892,
        tpr_drop=0.31 if bundled else None, truncated=7 if task in LONG else 0, protocol=1,
        operator="mask", erasure_token="[MASK]", long="truncate",
        rationale="proxy" if bundled else "human",
        entrants=tuple(rows),
        columns=columns,
        shown=tuple(_shown(i, task, labels, power, random) for i in range(shown)),
    )  # fmt: skip


def _standing(label: str, power: float) -> Standing:
    """Take explainers of little power for no better than random."""
    if EXPLAINERS[label.partition(":")[0]].family == "control":
        return "control"
    return "below" if power < 0.1 else "ranked"


def _entrant(label: str, power: float, random: Random) -> BoardRow:
    name, _, setting = label.partition(":")
    family = EXPLAINERS[name].family
    rows = {"perturbation": 40 * (1 + random.random()), "control": 0.0}.get(family, 1.0)
    backwards = 1.0 if family in ("gradient", "relevance") else 0.0
    falls = [0.97 * math.exp(-(0.4 + 2.5 * power) * k / 10) for k in range(10)]
    return BoardRow(
        label=label, name=name, family=family, package="faithbench", version="0.1.0",
        settings={"seed": 1} if setting else {}, seeds=(0, 1, 2) if "lime" in name else (0,),
        submission=None, records=(f"{name}.json",), seconds=0.002 * (1 + rows),
        seconds_ci95=(0.0018 * (1 + rows), 0.0023 * (1 + rows)), peak_memory_bytes=12_345_678,
        forwards=rows, backwards=backwards, forward_equivalents=rows + 2 * backwards,
        curve=tuple(round(value, 6) for value in falls), standing="ranked", aspects={}, place=None,
    )  # fmt: skip


def _column(
    metric: str, family: Family, better: bool | None, standings: dict[str, Standing],
    power: dict[str, float], n: int, random: Random, bundled: bool,
) -> Column:  # fmt: skip
    tested = family != "speed"
    sign = -1 if better is False else 1
    labels = sorted(standings, key=lambda label: SHELVES.index(standings[label]))
    means = {label: sign * (power[label] * 0.6 + 0.08 * random.random()) for label in labels}
    if metric == "delta_log_odds_neg":
        means.pop("attention", None)
    order = sorted(means, key=lambda label: -sign * means[label])
    pairs = [
        Pair(
            first=one, second=other, test="signed-rank", n=n,
            p=_p(means[one], means[other]) / 400, adjusted=_p(means[one], means[other]),
            effect=round(math.tanh(4 * sign * (means[one] - means[other])), 3), reason="",
        )
        for i, one in enumerate(order)
        for other in order[i + 1 :]
    ]  # fmt: skip
    above = [label for label in order if is_above(standings[label])]
    marks = dict(zip(above, _letters([means[label] for label in above]), strict=True))
    shown = sorted(order, key=lambda label: SHELVES.index(standings[label]))
    zero, top = means["random"], means[above[0]]
    cells = {
        label: Score(
            mean=round(means[label], 6),
            ci95=(means[label] - 0.03, means[label] + 0.04) if tested else None,
            n=n - 3 * (metric == "tau_loo"), skipped=3 * (metric == "tau_loo"),
            letters=marks.get(label, "") if tested else "",
            best=label == above[0] and better is not None,
            tie=tested and better is not None and label in above[1:]
            and _p(means[above[0]], means[label]) >= 0.05,
            skill=round((means[label] - zero) / (top - zero), 6) if tested else None,
        )
        for label in shown
    }  # fmt: skip
    for label in labels:
        empty = Score(
            mean=None, ci95=None, n=0, skipped=n, letters="", best=False, tie=False, skill=None
        )
        cells.setdefault(label, empty)
    gaps = tuple(
        Gap(one, other, round(abs(means[one] - means[other]), 6), 400)
        for one, other in pairwise(above)
    )
    facts = CATALOGUE.get(metric)
    return Column(
        metric=metric, title={"aopc": "AOPC", "lodds": "LOdds"}.get(metric, metric), family=family,
        higher_is_better=better, version=1, proxy=bundled and family == "plausibility",
        aspect=facts.aspect if facts else None, ranked=bool(facts and facts.ranked),
        cells=cells, pairs=tuple(pairs) if tested else (),
        power=Power(detectable=0.07, separated=0.6, gaps=gaps) if tested else None,
    )  # fmt: skip


def _p(one: float, other: float) -> float:
    return float(f"{math.exp(-60 * abs(one - other)):.4g}")


def _letters(means: list[float]) -> list[str]:
    """Return letters of the maximal runs of means that are not significantly different."""
    runs: list[tuple[int, int]] = []
    for i, mean in enumerate(means):
        end = max(j for j in range(i, len(means)) if _p(mean, means[j]) >= 0.05)
        if not runs or end > runs[-1][1]:
            runs.append((i, end))
    marks = [chr(97 + i) for i in range(len(runs))]
    return [
        "".join(mark for mark, (start, end) in zip(marks, runs, strict=True) if start <= i <= end)
        for i in range(len(means))
    ]


def _shown(
    index: int, task: str, labels: tuple[str, ...], power: dict[str, float], random: Random
) -> ShownExample:
    n = random.randint(150, 400) if task in LONG else random.randint(8, 40)
    tokens = tuple(random.choice(WORDS) for _ in range(n))
    truth = [random.gauss(0, 0.4) ** 3 for _ in tokens]
    scores = {}
    for label in labels:
        raw = [power[label] * t + 0.05 * random.gauss(0, 1) for t in truth]
        top = max(map(abs, raw))
        scores[label] = tuple(round(value / top, 4) for value in raw)
    right = index % 4 != 3
    return ShownExample(
        id=f"{task}-{index}", tokens=tokens, said="positive",
        truth="positive" if right else "negative", right=right,
        probability=round(0.6 + 0.4 * random.random(), 4), scores=scores,
        rationale=tuple(value > 0.08 for value in truth),
    )  # fmt: skip


def real_board() -> Board:
    """Return the small board with sst2 of real data and last, erased in two ways.

    The last explainer of each table is below the line.
    """
    board = small_board()
    sst2, *others = (_lowered(table) for table in board.tables)
    masked = sst2.model_copy(update={"source": "folder"})
    deleted = masked.model_copy(
        update={"id": "sst2-delete", "operator": "delete", "erasure_token": ""}
    )
    tables = (*others, deleted, masked)
    ranking = ranking_of(counted_tables(tables))
    return board.model_copy(
        update={
            "tables": tables,
            "ranking": ranking,
            "operators": operator_pairs(tables),
            "pareto": pareto_of(ranking),
        }
    )


def _lowered(table: Table) -> Table:
    """Put the last of the ranked below the line."""
    last = max(index for index, row in enumerate(table.entrants) if row.place is not None)
    rows = list(table.entrants)
    rows[last] = rows[last].model_copy(update={"standing": "below", "place": None, "aspects": {}})
    return table.model_copy(update={"entrants": tuple(rows)})


def empty_board() -> Board:
    nothing: dict[str, Any] = {
        "records": 0, "tables": (), "ranking": None, "operators": (), "pareto": (),
    }  # fmt: skip
    return small_board().model_copy(update=nothing)


def question_board() -> Board:
    """Return a board of one question, told in tokens that mark where words begin."""
    board = small_board()
    table = board.tables[0]
    shown = table.shown[0].model_copy(
        update={
            "tokens": ("\u0120Who", "le", "\u0120wheat", "."),
            "scores": {table.entrants[0].label: (1.0, 0.0, -0.5, 0.2)},
            "rationale": (),
            "said": "wheat",
            "truth": "",
        }
    )
    asked = table.model_copy(update={"kind": "qa", "rationale": "none", "shown": (shown,)})
    return board.model_copy(update={"tables": (asked,), "ranking": None, "pareto": ()})
