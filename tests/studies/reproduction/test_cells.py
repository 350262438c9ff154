"""From cells to values: one record for all tables, labels, curves, costs, tags and networks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from faithbench.core.types import quiet
from faithbench.records.store import StoredRecord, stored_records
from faithbench.studies.reproduction import cells
from faithbench.studies.reproduction.cells import PLAIN, CellReader
from faithbench.studies.reproduction.measures import explanations
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.values import Measured, Missing, Value
from tests.studies.reproduction import (
    HEAD,
    MODEL,
    clock_of,
    put_marked_task,
    recipe_of,
    refuse,
    request_of,
)
from tests.support.training import save_base

TABLE = """\
[[items]]
id = "table-1"
title = "Explainers"
cells = { model = "net" }
rows = [{ name = "A", explainer = "attention" }, { name = "R", explainer = "random", seeds = 2 }]
columns = [
    { name = "AOPC", metric = "aopc" },
    { name = "percent", metric = "aopc", scale = 100 },
    { name = "negative", metric = "aopc", label = "negative" },
    { name = "AOPC 30%", metric = "aopc@30" },
    { name = "forwards", metric = "forward_equivalents" },
    { name = "seconds", metric = "seconds" },
]
printed = [["+", "+", "+", "+", "+", "+"], ["+", "+", "+", "+", "+", "+"]]
"""
SECOND = """\
[[items]]
id = "table-2"
title = "Other metrics"
cells = { model = "net", explainer = "attention" }
rows = [{ name = "A" }]
columns = [{ name = "L", metric = "lodds" }, { name = "T", metric = "pos:NOUN" }]
printed = [["+", "+"]]
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_base(tmp_path_factory.mktemp("models"), "bert")


def reader_of(place: Path, *parts: str, model: Path | None = None, **changes: Any) -> CellReader:
    recipe = recipe_of(place, HEAD, *parts, model=model)
    request = request_of(recipe, place, **changes)
    return CellReader(request, clock_of(request), quiet)


def values_of(reader: CellReader, item: str = "table-1") -> dict[str, Value]:
    return reader.values(reader.request.recipe.by_id[item])


def number(values: dict[str, Value], name: str) -> Measured:
    value = values[name]
    assert isinstance(value, Measured), value
    return value


@pytest.fixture(scope="module")
def read(
    tmp_path_factory: pytest.TempPathFactory, folder: Path
) -> tuple[dict[str, Value], dict[str, StoredRecord]]:
    """The cells of Table 1, and the records that they were read from; those of time are `timed`."""
    place = tmp_path_factory.mktemp("cells")
    reader = reader_of(place, MODEL, "texts = 12\n", TABLE, SECOND, model=folder)
    values = values_of(reader)
    records = stored_records(place / "results" / "records", "sst2")
    names = ((stored, stored.record.explainer.name) for stored in records)
    return values, {
        name if stored.record.metrics else f"{name} timed": stored for stored, name in names
    }


def test_a_record_holds_all_metrics_that_the_recipe_asks_of_it(
    read: tuple[dict[str, Value], dict[str, StoredRecord]],
) -> None:
    """Table 2 has LOdds of attention, so that one record serves both tables."""
    _, records = read
    assert set(records["attention"].record.metrics) == {"aopc", "lodds"}
    assert set(records["random"].record.metrics) == {"aopc"}
    assert records["random"].record.seeds == (0, 1)


def test_means_are_those_of_the_record(
    read: tuple[dict[str, Value], dict[str, StoredRecord]],
) -> None:
    values, records = read
    for name, row in (("attention", "A"), ("random", "R")):
        facts = records[name].record.metrics["aopc"]
        value = number(values, f"{row} | AOPC")
        assert facts.mean == pytest.approx(value.mean) and value.n == 12
        percent = number(values, f"{row} | percent")
        assert percent.mean == pytest.approx(100 * value.mean)
        (ref,) = value.records
        assert ref.sha256 == records[name].record.rows.sha256
    assert [len(number(values, f"{row} | AOPC").by_seed) for row in "AR"] == [1, 2]


def test_a_label_and_a_share_keep_their_own(
    read: tuple[dict[str, Value], dict[str, StoredRecord]],
) -> None:
    values, records = read
    rows = records["attention"].rows
    negative = [row.values["aopc"] or 0.0 for row in rows if row.label == 0]
    value = number(values, "A | negative")
    assert 0 < value.n == len(negative) < 12
    assert value.mean == pytest.approx(sum(negative) / len(negative))
    falls = [row.probability - row.curve[2] for row in rows]
    assert number(values, "A | AOPC 30%").mean == pytest.approx(sum(falls) / 12)


def test_costs_have_no_examples(
    read: tuple[dict[str, Value], dict[str, StoredRecord]],
) -> None:
    values, records = read
    cost = number(values, "A | forwards")
    expected = records["attention"].record.cost.forward_equivalents_per_example
    assert (cost.mean, cost.values, cost.by_seed) == (expected, {}, (expected,))


def test_seconds_are_those_of_the_explainer_alone(
    read: tuple[dict[str, Value], dict[str, StoredRecord]],
) -> None:
    values, records = read
    seconds = number(values, "A | seconds")
    assert seconds.mean == records["attention timed"].record.timing.seconds_median
    assert 0 < seconds.mean < 10 and seconds.values == {}


def test_nothing_is_run_again_for_another_table_of_the_same_records(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a tagger that calls the first word of a text a noun, and all others nothing."""
    monkeypatch.setattr(
        cells, "tags_of", lambda texts: [[((0, len(text.split()[0])), "NOUN")] for text in texts]
    )
    reader = reader_of(tmp_path, MODEL, "texts = 6\n", TABLE, SECOND, model=folder)
    values_of(reader)
    monkeypatch.setattr(explanations, "run_serving", refuse)
    values = values_of(reader, "table-2")
    again = reader_of(tmp_path, MODEL, "texts = 6\n", TABLE, SECOND, model=folder)
    assert values_of(again, "table-2") == values
    nouns = number(values, "A | T")
    assert (nouns.n, nouns.mean) == (6, 1.0), "all importance of tagged words is on one"


def test_one_metric_that_erases_nothing_stands_for_costs_alone(tmp_path: Path) -> None:
    only = TABLE.replace('"aopc"', '"seconds"').replace("aopc@30", "pos:NOUN")
    reader = reader_of(tmp_path, MODEL, only)
    assert reader._metrics(Part(model="net", explainer="random")) == (PLAIN,) == ("fi_entropy",)
    both = reader_of(tmp_path, MODEL, TABLE)
    assert both._metrics(Part(model="net", explainer="random")) == ("aopc",)
    # A student is not its teacher, nor a teacher another explainer.
    assert both._metrics(Part(model="net", explainer="gradient")) == (PLAIN,)
    assert both._metrics(Part(model="net", teacher="random", who="teacher")) == ("aopc",)
    student = Part(model="net", teacher="random", form="ranking", who="student")
    assert both._metrics(student) == (PLAIN,)


def test_a_missing_model_leaves_its_cells_missing_and_the_others_go_on(
    tmp_path: Path, folder: Path
) -> None:
    other = '[models.hub]\ntask = "sst2"\nstands_for = "BERT"\nhub = { name = "owner/net" }\n'
    table = TABLE.replace("seeds = 2 }", 'seeds = 2, model = "hub" }')
    reader = reader_of(tmp_path, MODEL, "texts = 6\n", other, table, model=folder)
    values = values_of(reader)
    assert isinstance(values["A | AOPC"], Measured)
    assert values["R | AOPC"] == Missing("only the hub has this model; --model hub")


# Networks themselves

TRAINED = """\
[models.{name}]
task = "{task}"
stands_for = "a CNN"
seeds = 2
texts = 6
[models.{name}.train]
arch = "cnn"
vectors = "random"
width = 8
objectives = [{objectives}]
epochs = 1
limit = 20
max_tokens = 12
"""
NETWORKS = """\
[[items]]
id = "table-1"
title = "Networks"
rows = [{ name = "No", model = "plain" }, { name = "Yes", model = "saliency" }]
columns = [
    { name = "Acc.", measure = "model", metric = "accuracy", scale = 100 },
    { name = "F1", measure = "model", metric = "macro_f1" },
    { name = "W.", measure = "saliency", metric = "word" },
    { name = "drop", measure = "saliency", metric = "tpr_drop" },
    { name = "AOPC", explainer = "gradient", metric = "aopc" },
]
printed = [[50, 0.5, 0.5, "+", "+"], [60, 0.6, 0.6, "+", "+"]]
"""


def test_networks_are_trained_scored_and_explained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two CNNs under two seeds each, on ten test texts, of which six are explained."""
    task = put_marked_task(tmp_path)
    parts = [
        TRAINED.format(name=name, task=task, objectives=objectives)
        for name, objectives in (("plain", ""), ("saliency", '"saliency:weight=0.5"'))
    ]
    reader = reader_of(tmp_path, *parts, NETWORKS, folder=tmp_path)
    values = values_of(reader)
    for row in ("No", "Yes"):
        accuracy = number(values, f"{row} | Acc.")
        assert (accuracy.n, len(accuracy.by_seed), len(accuracy.values)) == (10, 2, 10)
        assert accuracy.mean == pytest.approx(sum(accuracy.by_seed) / 2)
        assert set(accuracy.values.values()) <= {0.0, 50.0, 100.0}
        f1 = number(values, f"{row} | F1")
        assert (f1.n, len(f1.by_seed), f1.values) == (10, 2, {})
        share = number(values, f"{row} | W.")
        assert 0 <= share.mean <= 1 and len(share.records) == 2
        # Every text has one marked word, so that the mean of texts is that of words.
        assert len(share.values) == 10 and share.mean == pytest.approx(
            sum(share.values.values()) / 10
        )
        explained = number(values, f"{row} | AOPC")
        # One record per network; a text has the mean of both.
        assert (explained.n, len(explained.by_seed), len(explained.records)) == (6, 2, 2)
        assert explained.mean == pytest.approx(sum(explained.by_seed) / 2)
    kinds = [path.name.split("-")[-2] for path in (tmp_path / "results" / "figures").iterdir()]
    assert sorted(kinds) == ["saliency"] * 4 + ["scores"] * 4
    # All of it is found again, by another request.
    for name in ("measures.figures._measure", "measures.explanations.run_serving"):
        monkeypatch.setattr(f"faithbench.studies.reproduction.{name}", refuse)
    monkeypatch.setattr("faithbench.studies.sparse_attention.networks.fit", refuse)
    again = reader_of(tmp_path, *parts, NETWORKS, folder=tmp_path)
    assert values_of(again) == values


def test_a_network_without_a_level_has_no_number_for_it(tmp_path: Path) -> None:
    """Transformers have no decision layer in the sense of the paper."""
    save_base(tmp_path, "bert")
    task = put_marked_task(tmp_path)
    model = MODEL.replace('"sst2"', f'"{task}"').replace(
        "bundled:sst2", str(tmp_path / "tiny-bert")
    )
    table = NETWORKS.replace('"plain"', '"net"').replace('"saliency" }]', '"net" }]')
    reader = reader_of(tmp_path, model, table.replace('"word"', '"decision"'), folder=tmp_path)
    values = values_of(reader)
    assert values["No | W."] == Missing("this network has no decision")
    assert isinstance(values["No | F1"], Measured)
