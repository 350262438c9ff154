"""A chunk under several seeds: who runs under them, what the rows hold, and what is shared."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.explainers.selection import find_explainers
from faithbench.metrics.influence import Influence, on_state_values
from faithbench.metrics.rank_correlation import kendall
from faithbench.metrics.registry import find_metrics
from faithbench.models.encoding import encode
from faithbench.models.predictions import predictions
from faithbench.models.session import Session
from faithbench.run.chunk import batches_within, ids_of
from faithbench.run.job import Cell, Job, is_stochastic
from faithbench.run.loop import run
from faithbench.run.measures.influence import measure_influence
from tests.support.builders import make_task, put
from tests.support.explainers import USUAL
from tests.support.jobs import content
from tests.support.training import label_splits

TEXTS = ["good film", "the plot is dull and bad", "a very great film , and not dull", "not bad"]


@pytest.fixture
def job(tmp_path: Path, tiny_model: Any) -> Job:
    rows = [
        {"id": f"e{i}", "text": text, "label": i % 2, "rationale": [[0, 3]] if i else None}
        for i, text in enumerate(TEXTS)
    ]
    put(tmp_path, rows)
    return Job(
        data=load_dataset(make_task(rationale="human"), folder=tmp_path),
        model=tiny_model(),
        explainers=find_explainers("random,attention"),
        metrics=find_metrics("aopc,seed_agreement,auprc,iou_lexical"),
        results=tmp_path / "results",
        chunk=3,
    )


def quiet(*_: object) -> None:
    return


def test_long_ids_are_told_by_their_ends(job: Job) -> None:
    short, *others = job.data.examples
    long = replace(others[0], id="bundled-sst2-131")
    read = [encode(job.model, one, "text") for one in (short, long, *others[1:])]
    assert ids_of(read, [0]) == "e0" and ids_of(read, [0, 1, 2]) == "e0 and 2 more"
    assert ids_of(read, [1, 2]) == "...ed-sst2-131 and 1 more"


def test_only_what_draws_runs_under_several_seeds(job: Job) -> None:
    random, attention = run(replace(job, seed=5), quiet)
    assert (random.record.seeds, attention.record.seeds) == ((5, 6, 7), (5,))
    for row in random.rows:
        assert len(row.more_scores) == 2 and len({row.scores, *row.more_scores}) == 3
        assert set(row.by_seed) == {"aopc", "auprc", "iou_lexical"}
    for row in attention.rows:
        assert (row.more_scores, row.by_seed) == ((), {})
        assert row.values["seed_agreement"] is None
    assert attention.record.metrics["seed_agreement"].mean is None
    assert attention.record.metrics["seed_agreement"].skipped == 4


def test_values_are_means_over_seeds_and_each_seed_is_a_run_of_its_own(job: Job) -> None:
    (many, _) = run(job, quiet)
    single = [
        run(replace(job, seed=seed, seeds=1, results=job.results / str(seed)), quiet)[0]
        for seed in range(3)
    ]
    for place, row in enumerate(many.rows):
        own = [one.rows[place] for one in single]
        assert (row.scores, *row.more_scores) == tuple(r.scores for r in own)
        for name in ("aopc", "auprc", "iou_lexical"):
            each = [r.values[name] for r in own]
            assert list(row.by_seed[name]) == each
            there = [value for value in each if value is not None]
            mean = sum(there) / len(there) if there else None
            assert row.values[name] == (None if mean is None else pytest.approx(mean, abs=1e-9))
        assert (row.forwards, row.backwards) == (own[0].forwards, own[0].backwards)
        assert row.rows_asked == sum(r.rows_asked for r in own)
        curve = [sum(at) / 3 for at in zip(*(r.curve for r in own), strict=True)]
        assert len(curve) == 9 and row.curve == pytest.approx(curve, abs=1e-8)
    assert many.rows[0].values["auprc"] is None  # it has no rationale
    assert many.record.metrics["auprc"].skipped == 1


def test_another_number_of_seeds_is_another_cell(job: Job) -> None:
    def identities(**changes: Any) -> list[str]:
        changed = replace(job, **changes)
        return [Cell(changed, chosen).identity for chosen in job.explainers]

    random, attention = identities()
    assert identities(seeds=2)[0] != random and identities(seeds=2)[1] == attention
    assert identities(encoder="other")[1] != attention


@pytest.mark.parametrize("name", sorted(USUAL))
def test_those_that_draw_say_so(name: str, tiny_model: Any, batch_of: Any) -> None:
    """Another seed gives other scores if, and only if, the class says that it draws."""
    model = tiny_model()
    setting = ":mask=ones" if name == "lrp-mask" else ""
    (chosen,) = find_explainers(name + setting)
    batch = batch_of(model, ["a very great film , and not dull , is a good film and a plot"])
    first = chosen.explainer(Session(model), batch)
    second = chosen.explainer(Session(model), replace(batch, seeds=(12345,)))
    length = int(batch.attention.sum())
    differ = bool((first[0, :length] != second[0, :length]).any())
    assert differ == is_stochastic(chosen.explainer)


def test_batches_keep_within_the_budget(job: Job) -> None:
    encodings = [encode(job.model, example) for example in job.data.examples]
    assert [len(e.ids) for e in encodings] == [4, 8, 10, 4]
    cuts = {
        budget: [(part.start, part.stop) for part in batches_within(encodings, budget)]
        for budget in (1, 15, 16, 19, 20, 30, 39, 40)
    }
    assert cuts[1] == cuts[15] == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert cuts[16] == cuts[19] == [(0, 2), (2, 3), (3, 4)]
    assert cuts[20] == [(0, 2), (2, 4)]
    assert cuts[30] == cuts[39] == [(0, 3), (3, 4)]
    assert cuts[40] == [(0, 4)]


@dataclass(frozen=True)
class Watch:
    """An explainer that notes the batches it sees, and has memory for so many rows alone."""

    most: int = 9
    seen: ClassVar[list[int]] = []

    def __call__(self, session: Any, batch: Any) -> torch.Tensor:
        self.seen.append(len(batch.ids))
        if len(batch.ids) > self.most:
            raise torch.OutOfMemoryError("too little memory")
        return batch.ids.double()


def watched(job: Job, most: int = 9, budget: int = 2048) -> tuple[list[int], list[Any]]:
    Watch.seen.clear()
    chosen = replace(job.explainers[1], explainer=Watch(most))
    changed = replace(job, explainers=(job.explainers[0], chosen), budget=budget, chunk=4)
    rows = run(replace(changed, metrics=find_metrics("aopc")), quiet)[1].rows
    return Watch.seen[1:], [(row.id, row.scores, row.values) for row in rows]  # after a warm-up


def test_long_texts_are_explained_in_smaller_batches(job: Job) -> None:
    whole, rows = watched(job)
    parts, same = watched(replace(job, results=job.results / "again"), budget=16)
    assert whole == [4]
    assert parts == [2, 1, 1]  # of 4, 4, 8 and 10 tokens
    assert same == rows


def test_a_batch_without_memory_is_explained_in_halves(job: Job) -> None:
    _, rows = watched(job)
    seen, same = watched(replace(job, results=job.results / "again"), most=1)
    assert seen == [4, 2, 1, 1, 2, 1, 1]
    assert same == rows
    with pytest.raises(torch.OutOfMemoryError):
        watched(replace(job, results=job.results / "never"), most=0)


def test_influence_is_measured_once_and_compared_with_every_explainer(job: Job) -> None:
    names = "tau_gradient,tau_inner_gradient,tau_inner_loo,own_share,aopc"
    outcomes = run(replace(job, metrics=find_metrics(names)), quiet)
    encodings = [encode(job.model, example) for example in job.data.examples]
    with Session(job.model) as session:
        found = measure_influence(session, encodings, predictions(session.engine, encodings))
    by_id = {e.example.id: one for e, one in zip(encodings, found, strict=True)}
    for outcome in outcomes:
        for row in outcome.rows:
            influence = by_id[row.id]
            assert row.values["own_share"] == pytest.approx(own_share(influence), abs=1e-6)
            seeds = [row.scores, *row.more_scores]
            taus = [kendall(np.abs(scores), influence.input_gradient) for scores in seeds]
            assert row.values["tau_gradient"] == pytest.approx(mean_of(taus), abs=1e-6)
            assert row.values["tau_inner_loo"] is None  # a Transformer with blocks
    random, attention = outcomes
    assert all(len(row.by_seed["tau_gradient"]) == 3 for row in random.rows)
    assert attention.record.metrics["tau_inner_gradient"].mean is not None


def own_share(influence: Influence) -> float | None:
    return on_state_values(influence)["own_share"]


def mean_of(values: list[float | None]) -> float | None:
    there = [value for value in values if value is not None]
    return sum(there) / len(there) if there else None


def test_influence_of_a_text_in_windows_is_refused(job: Job) -> None:
    windows = replace(job, metrics=find_metrics("tau_gradient"), long="window")
    long = replace(job.data, examples=(replace(job.data.examples[0], text="good film " * 60),))
    with pytest.raises(FaithbenchError, match="choose --long truncate"):
        run(replace(windows, data=long), quiet)


def test_bounds_that_are_known_change_no_bit(job: Job, tmp_path: Path, tiny_model: Any) -> None:
    """Rows of a search must not decide which others share a pass: the last bits would move."""
    data = replace(job.data, examples=label_splits().test.examples[:6])
    model = tiny_model("bert", dtype=torch.float32)
    job = replace(job, data=data, model=model, metrics=find_metrics("aopc,naopc"), chunk=2)
    run(job, quiet)
    assert list(job.results.glob("bounds-*.jsonl"))
    again = replace(job, results=tmp_path / "again")
    again.results.mkdir()
    for path in job.results.glob("bounds-*.jsonl"):
        (again.results / path.name).write_bytes(path.read_bytes())
    run(again, quiet)
    assert content(again.results) == content(job.results)
