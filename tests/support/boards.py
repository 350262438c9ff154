"""Boards made from numbers that a seed gives: small, or of a real leaderboard's size."""

from __future__ import annotations

import math
from random import Random
from typing import Any, Final

from faithbench.explainers.registry import EXPLAINERS
from faithbench.leaderboard.board import (
    Board,
    BoardRow,
    Column,
    Family,
    Pair,
    ParetoPoint,
    Ranking,
    Score,
    ShownExample,
    Table,
)

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
    return Board(
        board_schema=1,
        digest="5" * 64,
        records=len(tables) * explainers,
        tables=tables,
        rankings=_rankings(tables, labels, power, random),
        pareto=_pareto(tables[0], power),
    )


def _labels(count: int) -> tuple[str, ...]:
    names = ["random", "lrp-mask", *sorted(set(EXPLAINERS) - {"random", "lrp-mask", "human"})]
    return tuple(f"{names[i % len(names)]}{':seed=1' * (i // len(names))}" for i in range(count))


def _table(
    task: str, labels: tuple[str, ...], power: dict[str, float], shown: int, random: Random
) -> Table:
    n = 50 if task in LONG else 200
    bundled = task == TASKS[0]
    return Table(
        id=task, task=task, task_version=1, title=f"The {task} task",
        kind="qa" if task == "squad" else "classification",
        source="bundled" if bundled else "folder", split="test", n=n, data_sha256="d" * 64,
        model=f"bundled:{task}", weights_sha256="w" * 64, dtype="float32", accuracy=0.892,
        tpr_drop=0.31 if bundled else None, truncated=7 if task in LONG else 0, protocol=1,
        operator="mask", erasure_token="[MASK]", long="truncate",
        rationale="proxy" if bundled else "human",
        entrants=tuple(_entrant(label, power[label], random) for label in labels),
        columns=tuple(
            _column(metric, family, better, labels, power, n, random, bundled)
            for family, metrics in METRICS.items()
            for metric, better in metrics.items()
        ),
        shown=tuple(_shown(i, task, labels, power, random) for i in range(shown)),
    )  # fmt: skip


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
        curve=tuple(round(value, 6) for value in falls),
    )  # fmt: skip


def _column(
    metric: str, family: Family, better: bool | None, labels: tuple[str, ...],
    power: dict[str, float], n: int, random: Random, bundled: bool,
) -> Column:  # fmt: skip
    tested = family != "speed"
    sign = -1 if better is False else 1
    means = {label: sign * (power[label] * 0.6 + 0.08 * random.random()) for label in labels}
    if metric == "delta_log_odds_neg":
        means.pop("attention", None)
    order = sorted(means, key=lambda label: -sign * means[label])
    pairs = [
        Pair(
            first=one, second=other, test="Wilcoxon signed-rank", n=n,
            p=_p(means[one], means[other]) / 400, adjusted=_p(means[one], means[other]),
            effect=round(math.tanh(4 * (means[one] - means[other])), 3), reason="",
        )
        for i, one in enumerate(order)
        for other in order[i + 1 :]
    ]  # fmt: skip
    letters = _letters([means[label] for label in order]) if tested else [""] * len(order)
    cells = {
        label: Score(
            mean=round(means[label], 6),
            ci95=(means[label] - 0.03, means[label] + 0.04) if tested else None,
            n=n - 3 * (metric == "tau_loo"), skipped=3 * (metric == "tau_loo"),
            letters=letters[i], best=i == 0 and better is not None,
            tie=tested and better is not None and i > 0
            and _p(means[order[0]], means[label]) >= 0.05,
        )
        for i, label in enumerate(order)
    }  # fmt: skip
    for label in labels:
        empty = Score(mean=None, ci95=None, n=0, skipped=n, letters="", best=False, tie=False)
        cells.setdefault(label, empty)
    return Column(
        metric=metric, title={"aopc": "AOPC", "lodds": "LOdds"}.get(metric, metric), family=family,
        higher_is_better=better, version=1, proxy=bundled and family == "plausibility",
        cells=cells, pairs=tuple(pairs) if tested else (),
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


def _rankings(
    tables: tuple[Table, ...], labels: tuple[str, ...], power: dict[str, float], random: Random
) -> tuple[Ranking, ...]:
    return tuple(
        _ranking(family, tables, labels, power, random)
        for family in ("overall", "faithfulness", "stability", "plausibility", "speed")
    )


def _ranking(
    family: str, tables: tuple[Table, ...], labels: tuple[str, ...], power: dict[str, float],
    random: Random,
) -> Ranking:  # fmt: skip
    noise = 0.0 if family == "faithfulness" else 0.4
    worth = {label: power[label] + noise * random.random() for label in labels}
    order = sorted(labels, key=lambda label: -worth[label])
    ranks = {label: round(1 + i + 0.7 * random.random(), 3) for i, label in enumerate(order)}
    reach = 6.2
    groups: list[tuple[str, ...]] = []
    for i, label in enumerate(order):
        group = tuple(one for one in order[i:] if ranks[one] - ranks[label] <= reach)
        if not groups or group[-1] != groups[-1][-1]:
            groups.append(group)
    return Ranking(
        family=family, over=tuple(f"{t.id}/{m}" for t in tables for m in ("aopc", "lodds")),
        left_out=("human",), mean_ranks=ranks,
        ci95={label: (max(1.0, rank - 1.5), rank + 1.6) for label, rank in ranks.items()},
        friedman_p=3.2e-9, critical_difference=reach, groups=tuple(groups), reason="",
    )  # fmt: skip


def _pareto(table: Table, power: dict[str, float]) -> tuple[ParetoPoint, ...]:
    order = sorted(table.entrants, key=lambda entrant: -power[entrant.label])
    cheapest = math.inf
    points = []
    for i, entrant in enumerate(order):
        cost = round(entrant.forward_equivalents, 3)
        points.append(
            ParetoPoint(
                label=entrant.label, faithfulness_rank=i + 1.0, forward_equivalents=cost,
                front=cost < cheapest,
            )
        )  # fmt: skip
        cheapest = min(cheapest, cost)
    return tuple(points)


def empty_board() -> Board:
    nothing: dict[str, Any] = {"records": 0, "tables": (), "rankings": (), "pareto": ()}
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
            "said": "answer",
            "truth": "",
        }
    )
    asked = table.model_copy(update={"kind": "qa", "rationale": "none", "shown": (shown,)})
    return board.model_copy(update={"tables": (asked,)})
