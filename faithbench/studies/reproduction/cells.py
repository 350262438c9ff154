"""From cells to values: each measure finds, or makes, what its numbers are read from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from faithbench.core.files import digest_of
from faithbench.core.types import Progress
from faithbench.models.encoding import encode
from faithbench.records.store import StoredRecord
from faithbench.studies.reproduction.measures.explanations import Explanations, Wanted
from faithbench.studies.reproduction.measures.figures import figures_of
from faithbench.studies.reproduction.measures.fresh import fresh_value
from faithbench.studies.reproduction.measures.heads import heads_value
from faithbench.studies.reproduction.measures.networks import Network, Networks
from faithbench.studies.reproduction.measures.parts_of_speech import Tagged, profile_of, tags_of
from faithbench.studies.reproduction.measures.students import Students
from faithbench.studies.reproduction.measures.study import study_value
from faithbench.studies.reproduction.reading import COSTS, SALIENCY_SCORES
from faithbench.studies.reproduction.recipe import CellSpec, Item, Part, cells_of
from faithbench.studies.reproduction.request import SEEDS, Clock, ReproduceRequest
from faithbench.studies.reproduction.values import (
    Measured,
    Missing,
    RecordRef,
    Value,
    measured,
    of_seeds,
    row_values,
)

TIMED = ("seconds",)
"""Metrics of a run that is only about cost."""
PLAIN = "fi_entropy"
"""A metric that erases nothing: for cells that need the scores, or the time, alone."""


@dataclass
class CellReader:
    """Reads the cells of one request; what they share is made once."""

    request: ReproduceRequest
    clock: Clock
    progress: Progress
    networks: Networks = field(init=False)
    explanations: Explanations = field(init=False)
    students: Students = field(init=False)
    _parts: list[Part] = field(init=False)

    def __post_init__(self) -> None:
        """Put the makers of networks and of records to work for this request."""
        self.networks = Networks(self.request, self.clock, self.progress)
        self.explanations = Explanations(self.request, self.networks, self.clock, self.progress)
        tables = (item for item in self.request.recipe.items if item.maps is None)
        self._parts = [cell.part for item in tables for cell in cells_of(item).values()]
        self.students = Students(self.networks, self.explanations, self._metrics)

    def values(self, item: Item) -> dict[str, Value]:
        """Return the value of each cell of a table or figure."""
        cells = cells_of(item)
        explained = [c for c in cells.values() if (c.part.measure or "") in ("", "explanation")]
        for group in _in_turn(explained):
            wanted = [one for cell in group for one in self._wanted_or_nothing(cell.part)]
            self.explanations.make(wanted)
        return {name: self._value(cell) for name, cell in cells.items()}

    def _value(self, cell: CellSpec) -> Value:
        part = cell.part
        read: dict[str, Callable[[Part], Value]] = {
            "explanation": self._explanation,
            "model": self._model,
            "saliency": self._model,
            "fresh": partial(fresh_value, self.networks),
            "pair": self.students.value,
            "study": partial(study_value, self.networks),
            "heads": partial(heads_value, self.networks),
        }
        return read[part.measure or "explanation"](part)

    # Records of explainers

    def _wanted_or_nothing(self, part: Part) -> list[Wanted]:
        found = self._wanted(part)
        return [] if isinstance(found, Missing) else found

    def _wanted(self, part: Part) -> list[Wanted] | Missing:
        """Return the records that a cell is read from, one per network."""
        assert part.model is not None and part.metric is not None  # `read_recipe` has looked
        networks = self.networks.of(part.model)
        if isinstance(networks, Missing):
            return networks
        seeds = self.request.seeds_of(part.seeds or SEEDS)
        wanted = []
        for network in networks:
            explainer = self._explainer(part, network)
            metrics = self._metrics(part)
            wanted.append(Wanted(network, explainer, metrics, seeds))
        return wanted

    def _explainer(self, part: Part, network: Network) -> str:
        if part.who == "student":
            assert part.teacher is not None and part.form is not None
            return f"l2e:student={self.students.folder(network, part.teacher, part.form)}"
        if part.who == "teacher":
            assert part.teacher is not None
            return part.teacher
        return part.explainer or "random"

    def _metrics(self, part: Part) -> tuple[str, ...]:
        """Return all metrics that the recipe asks of this explainer and model, in one order.

        A record is made with all of them, so that it serves every table of the paper. Time is
        measured by a run of its own: published records have that of another machine.
        """
        if part.metric in COSTS:
            return TIMED
        asked = {
            _plain_metric(other.metric)
            for other in self._parts
            if other.metric is not None and _same_run(other, part)
        }
        return tuple(sorted(asked - {PLAIN})) or (PLAIN,)

    def _explanation(self, part: Part) -> Value:
        wanted = self._wanted(part)
        if isinstance(wanted, Missing):
            return wanted
        assert part.metric is not None
        by_seed: list[Mapping[str, float | None]] = []
        refs: list[RecordRef] = []
        costs: list[float] = []
        for one in wanted:
            stored = self.explanations.record(one)
            if isinstance(stored, Missing):
                return stored
            refs.append(self.explanations.ref(stored))
            if part.metric in COSTS:
                cost = _cost(stored, part.metric)
                if cost is None:
                    return Missing("its cost was not measured")
                costs.append(cost)
            elif part.metric.startswith("pos:"):
                by_seed.append(self._part_of_speech(one, stored, part.metric[4:]))
            else:
                # A published record may have more texts than those of the label asked for.
                label = self._label(one.network, part.label or one.network.only or None)
                values = row_values(stored, part.metric, label)
                by_seed += values if len(wanted) == 1 else [_averaged(values)]
        if costs:
            return of_seeds(costs, part.scale or 1.0, refs)
        return measured(by_seed, part.scale or 1.0, refs)

    def _label(self, network: Network, name: str | None) -> int | None:
        return None if name is None else network.task.labels.index(name)

    def _part_of_speech(
        self, one: Wanted, stored: StoredRecord, tag: str
    ) -> dict[str, float | None]:
        data, model = self.networks.texts(one.network), self.networks.load(one.network)
        texts = [example.text for example in data.examples]
        key = (data.task.name, digest_of([example.id for example in data.examples]))
        if key not in _TAGS:
            _TAGS[key] = tags_of(texts)
        encodings = [encode(model, example, data.task.evidence) for example in data.examples]
        scores = [np.array(stored.by_id[example.id].scores) for example in data.examples]
        profile = profile_of(encodings, scores, _TAGS[key])
        return {
            example.id: shares.get(tag)
            for example, shares in zip(data.examples, profile.shares, strict=True)
        }

    # Networks themselves

    def _model(self, part: Part) -> Value:
        assert part.model is not None and part.metric is not None
        networks = self.networks.of(part.model)
        if isinstance(networks, Missing):
            return networks
        saliency = part.metric in SALIENCY_SCORES
        scores, refs = [], []
        rights: list[dict[str, float | None]] = []
        for network in networks:
            with self.clock.piece(f"score {network.key} {network.seed} {saliency}"):
                figures, ref = figures_of(
                    self.networks.load(network),
                    self.networks.tested(network),
                    self.request.results / "figures",
                    saliency=saliency,
                )
            value = (figures.saliency if saliency else figures.scores).get(part.metric)
            if value is None:
                return Missing(f"this network has no {part.metric}")
            scores.append(value)
            refs.append(ref)
            rights.append(
                dict(figures.by_text.get(part.metric, {})) if saliency else dict(figures.by_id)
            )
        scale = part.scale or 1.0
        if part.metric == "accuracy":
            return measured(rights, scale, refs)
        # The number itself is over all words; tests compare what each text contributes.
        tested = measured(rights, scale) if saliency and any(rights) else None
        values = tested.values if isinstance(tested, Measured) else None
        return of_seeds(scores, scale, refs, values=values, n=figures.n)


_TAGS: dict[tuple[str, str], list[Tagged]] = {}


def _in_turn(cells: Sequence[CellSpec]) -> Iterable[list[CellSpec]]:
    """Yield the cells of one model after the other, so that only one is loaded at a time."""
    models = dict.fromkeys(cell.part.model for cell in cells)
    for model in models:
        yield [cell for cell in cells if cell.part.model == model]


def _same_run(one: Part, other: Part) -> bool:
    """Return whether two cells are read from the same record."""
    if (one.measure or "explanation") not in ("explanation",):
        return False

    def run(part: Part) -> tuple[object, ...]:
        explainer = part.teacher if part.who == "teacher" else part.explainer
        student = (part.teacher, part.form) if part.who == "student" else None
        return part.model, explainer if student is None else None, student

    return run(one) == run(other)


def _plain_metric(metric: str) -> str:
    """Return the metric of the registry that a cell's number is read from."""
    if metric in COSTS or metric.startswith("pos:"):
        return PLAIN
    return "aopc" if "@" in metric else metric


def _averaged(by_seed: Sequence[Mapping[str, float | None]]) -> dict[str, float | None]:
    """Return each example's mean over an explainer's seeds."""
    averages: dict[str, float | None] = {}
    for name in by_seed[0]:
        present = [value for seed in by_seed if (value := seed[name]) is not None]
        averages[name] = math.fsum(present) / len(present) if present else None
    return averages


def _cost(stored: StoredRecord, metric: str) -> float | None:
    record = stored.record
    if metric == "seconds":
        return record.timing.seconds_median
    return record.cost.forward_equivalents_per_example
