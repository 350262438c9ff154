"""Students of a recipe: distilled where they are missing, and read beside their teachers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from faithbench.core.files import digest_of, replace_file, slug
from faithbench.core.schema import Facts
from faithbench.core.seals import parse_sealed, seal_json
from faithbench.explainers.students.card import student_name
from faithbench.models.encoding import encode
from faithbench.models.session import Session
from faithbench.records.store import StoredRecord
from faithbench.studies.reproduction.measures.explanations import Explanations, Wanted
from faithbench.studies.reproduction.measures.networks import Network, Networks
from faithbench.studies.reproduction.measures.pairs import (
    own_readings,
    same_prediction,
    student_labels,
)
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.request import SEEDS
from faithbench.studies.reproduction.values import Missing, RecordRef, Value, measured
from faithbench.training.distil.distil import DistilRequest, distil
from faithbench.training.distil.recipe import DistilRecipe

Readings = dict[str, list[dict[str, float | None]]]
"""By name, for each initialisation, a value per text."""


class PairReadings(Facts):
    """What was read of a student and its teacher; `rows` are the digests of the records' rows."""

    rows: dict[str, str]
    tables: Readings


@dataclass
class Students:
    """Makes the students of one request; `metrics_of` says what their records are to hold."""

    networks: Networks
    explanations: Explanations
    metrics_of: Callable[[Part], tuple[str, ...]]
    _folders: dict[tuple[str, str, str], Path] = field(default_factory=dict)

    def folder(self, network: Network, teacher: str, form: str) -> Path:
        """Return the folder of a student: the model's own, or one that is distilled now."""
        key = (network.ref, teacher, form)
        if key in self._folders:
            return self._folders[key]
        model = self.networks.load(network)
        name = student_name(teacher, form)
        bundled = None if model.folder is None else model.folder / "students" / name
        if bundled is not None and bundled.is_dir() and not self.networks.request.quick:
            self._folders[key] = bundled
            return bundled
        spec = self.networks.request.recipe.models[network.key]
        lessons, seeds = self.networks.request.lessons(spec), self.networks.request.seeds_of(SEEDS)
        root = self.networks.request.results / "students"
        out = root / slug(f"{network.key}-{name}-{lessons}-{model.sha256[:8]}-{seeds}")
        with self.networks.clock.piece(f"distil {out.name}"):
            distil(
                DistilRequest(
                    task=network.task,
                    teacher=teacher,
                    recipe=self._recipe(form),
                    seeds=seeds,
                    model=network.ref,
                    folder=self.networks.request.folder,
                    limit=lessons,
                    device=self.networks.request.device,
                    jobs=self.networks.request.jobs,
                    out=out,
                    explanations=root / "explanations",
                ),
                self.networks.progress,
            )
        self._folders[key] = out
        return out

    def _recipe(self, form: str) -> DistilRecipe:
        usual = DistilRecipe(form=form)  # type: ignore[arg-type]  # a form by schema
        return replace(usual, epochs=1) if self.networks.request.quick else usual

    def value(self, part: Part) -> Value:
        """Read a student beside its teacher; a labelling one by the tokens that it labels."""
        assert part.model is not None and part.metric is not None
        assert part.teacher is not None and part.form is not None
        networks = self.networks.of(part.model)
        if isinstance(networks, Missing):
            return networks
        metric = part.metric
        if metric in ("both", "own_both"):
            column = "both own" if part.form == "labelling" else "both"
        else:
            column = f"{metric.removeprefix('own_')} {part.who or 'student'}"
        by_seed: list[Mapping[str, float | None]] = []
        refs: list[RecordRef] = []
        for network in networks:
            table = self._readings(network, part.teacher, part.form)
            if isinstance(table, Missing):
                return table
            tables, ref = table
            if column not in tables:
                return Missing("only students that label tokens have this number")
            by_seed += tables[column]
            refs.append(ref)
        return measured(by_seed, part.scale or 1.0, refs)

    def _readings(
        self, network: Network, teacher: str, form: str
    ) -> tuple[Readings, RecordRef] | Missing:
        """Return what records do not have, by name: a value per text, for each initialisation."""
        folder = self.folder(network, teacher, form)
        seeds = self.networks.request.seeds_of(SEEDS)
        like = Part(model=network.key, metric="agreement")
        stored: dict[str, StoredRecord] = {}
        for who, explainer in (
            ("student", f"l2e:student={folder}"), ("teacher", teacher), ("random", "random"),
        ):  # fmt: skip
            update = {"who": who, "teacher": teacher, "form": form}
            part = like.model_copy(update=update if who != "random" else {"explainer": "random"})
            wanted = Wanted(network, explainer, self.metrics_of(part), seeds)
            one = self.explanations.record(wanted)
            if isinstance(one, Missing):
                return one
            stored[who] = one
        path = (
            self.networks.request.results
            / "pairs"
            / f"{slug(network.key)}-{folder.name}-{form}.json"
        )
        digests = {name: one.record.rows.sha256 for name, one in stored.items()}
        known = _kept(path)
        with self.networks.clock.piece(f"pair {path.stem}"):
            if known is None or known.rows != digests:
                tables = self._read_pair(network, folder, form, stored)
                known = PairReadings(rows=digests, tables=tables)
                path.parent.mkdir(parents=True, exist_ok=True)
                replace_file(path, seal_json(known.model_dump()).encode())
        return known.tables, RecordRef(f"pairs/{path.name}", digest_of(known.model_dump()))

    def _read_pair(
        self, network: Network, folder: Path, form: str, stored: Mapping[str, StoredRecord]
    ) -> Readings:
        model, data = self.networks.load(network), self.networks.texts(network)
        encodings = [encode(model, example, data.task.evidence) for example in data.examples]
        ids = [example.id for example in data.examples]
        rows = {name: [one.by_id[key] for key in ids] for name, one in stored.items()}
        targets = [int(row.target) for row in rows["student"]]  # type: ignore[arg-type]  # a class
        full = [row.probability for row in rows["student"]]
        tables: Readings = {}
        count = max(1 + len(row.more_scores) for row in rows["student"])
        with Session(model) as session:
            for seed in range(count):
                scores = {
                    name: [
                        np.array((row.scores, *row.more_scores)[seed % (1 + len(row.more_scores))])
                        for row in of
                    ]
                    for name, of in rows.items()
                }
                found = {"both": same_prediction(session, encodings, scores)}
                if form == "labelling":
                    labels = student_labels(model, folder, seed, encodings, targets)
                    found |= own_readings(session, encodings, targets, full, labels, scores)
                for name, column in found.items():
                    tables.setdefault(name, []).append(dict(zip(ids, column, strict=True)))
                session.clear()
        return tables


def _kept(path: Path) -> PairReadings | None:
    """Return what an earlier call kept; None if there is nothing, or if it is damaged."""
    try:
        return PairReadings.model_validate(parse_sealed(path.read_bytes()))
    except (FileNotFoundError, ValueError):  # of pydantic too
        return None
