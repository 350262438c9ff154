"""The schema of a record: its parts, frozen and closed to unknown keys.

A new field goes into its part here, with a default, so that older records can still be read;
`run/finish.py` fills it, and `submissions/record_checks.py` checks it where it can be derived.
"""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field, JsonValue, field_validator

from faithbench.core.erasure import Operator
from faithbench.core.schema import Count, Facts
from faithbench.core.types import Long
from faithbench.data.kinds import KindName
from faithbench.data.task_schema import Rationale, SourceName


class SpanFacts(Facts):
    """Numbers of rationale spans that the model's input holds whole, in part, or not at all."""

    whole: Count
    cut: Count
    lost: Count


class TaskFacts(Facts):
    """The examples that were explained.

    `data_checked` is true if the task pins these data, so that a repetition reads the same.
    Rationales are marked by people, stand in for that (proxy), or there are none;
    `rationale_share` is the mean share of words that they mark, of those the model reads.
    """

    name: str
    version: int
    kind: KindName
    split: str
    n: Count
    source: SourceName
    data_sha256: str
    data_checked: bool
    rationale: Rationale
    rationale_share: float | None = None
    spans: SpanFacts | None = None


class PrecisionFacts(Facts):
    """How far half precision moved the probability of the prediction, on a sample of inputs."""

    inputs: Count
    largest_shift: float
    mean_shift: float
    changed_predictions: Count


class ModelFacts(Facts):
    """The network; `accuracy` (of answers: exact match) is on the evaluated examples.

    `sha256` is the digest of all files that decide its predictions: weights, configuration,
    tokenizer, adapter. It is None in records from before there was one whose model is not at hand:
    such a network is known by its weights alone. `truncated` counts the texts that were cut.
    `tpr_drop` is the part of its true-positive rate that the network loses when the rationale's
    words are erased. `precision` compares a network in half precision with itself in float32.
    """

    name: str
    revision: str | None
    sha256: str | None = None
    weights_sha256: str
    dtype: str
    accuracy: float | None
    truncated: Count
    labels: tuple[str, ...]
    tpr_drop: float | None = None
    precision: PrecisionFacts | None = None

    @property
    def digest(self) -> str:
        """The digest that the network is known by: of its files, or else of its weights."""
        return self.sha256 or self.weights_sha256


class ExplainerFacts(Facts):
    """The explainer and the package it comes from; `assets` maps each file it read to its sha256.

    `largest_gap` is how far, at most, scores miss the sum that the method promises. `revision`
    counts how often the scores or the cost of an explainer changed, within versions of the package.
    """

    name: str
    package: str
    version: str
    settings: dict[str, bool | int | float | str]
    assets: dict[str, str]
    largest_gap: float | None = None
    revision: Annotated[int, Field(ge=1)] = 1


class ProtocolFacts(Facts):
    """How tokens were erased and long texts read, and by which version of docs/protocol.md.

    `encoder` names the sentence encoder that found semantic neighbours, if any did.
    """

    version: int
    operator: Operator
    erasure_token: str
    long: Long = "truncate"
    encoder: str | None = None


class MetricFacts(Facts):
    """Summary of one metric; `skipped` counts the examples without a value.

    `proxy` is true for agreement with rationales that no person marked, which has a column of
    its own.
    """

    version: int
    family: str
    higher_is_better: bool | None
    mean: float | None
    ci95: tuple[float, float] | None
    n: Count
    skipped: Count
    proxy: bool = False


class RowsFacts(Facts):
    """The file of per-example results next to the record."""

    file: str
    sha256: str

    @field_validator("file")
    @classmethod
    def _bare_name(cls, file: str) -> str:
        # A record may be anybody's: it must not make readers open files elsewhere.
        if file in ("", ".", "..") or "/" in file or "\\" in file:
            raise ValueError(f"{file!r} should be a bare file name, without a folder")
        return file


class CostFacts(Facts):
    """Work that every machine counts alike: rows through the network.

    The first two are of the metrics, the others of the explainer, per example and seed; those
    are None for precomputed scores, where they could not be counted. `elsewhere_per_example` is
    what rows through another network cost, in forwards of the model; None if there were none.
    """

    rows_asked: Count
    distinct_rows: Count
    forwards_per_example: float | None
    backwards_per_example: float | None
    elsewhere_per_example: float | None = None
    forward_equivalents_per_example: float | None


class TimingFacts(Facts):
    """Measured time and memory: all that two identical runs differ in, but for the sha256.

    `alone` examples, spread over all lengths, were explained once more for this: one at a time
    and warm, by this explainer alone, so that others in the same run do not matter. The median,
    its interval, and the peak memory above the loaded model are of these. `seconds_total` is
    what the run itself took, with shared passes counted in full; for precomputed scores there is
    nothing but that, the time of the process that made them, or None. `token_budget` is the number
    of padded tokens per pass that was found to be the quickest on the device; None on the CPU,
    where it is fixed.
    """

    alone: Count = 0
    seconds_median: float | None = None
    seconds_ci95: tuple[float, float] | None = None
    peak_memory_bytes: Count | None = None
    seconds_total: float | None
    token_budget: Count | None = None


class EnvironmentFacts(Facts):
    """Versions of the software and the kind of machine, never the machine's name.

    `tf32` is true if float32 products were allowed to lose bits; None where nothing does so.
    `compiled` is true if the engine's pass was compiled by torch, else None.
    """

    packages: dict[str, str]
    python: str
    platform: str
    device: str
    threads: int
    tf32: bool | None = None
    compiled: bool | None = None


class SourceFacts(Facts):
    """Git state of the checkout that ran; both are None outside a checkout."""

    commit: str | None
    dirty: bool | None


class FreshFacts(Facts):
    """How the classifiers behind `fresh_f1_topk` and `fresh_f1_contiguous` were trained.

    `ratio` is the share of the words that was kept, in the `form` of the paper or of its released
    code. There is a classifier per seed of the record, of which `macro_f1` lists the scores; they
    share `recipe` and the `base` that they start from, and read the rationales of `train` and
    `dev` examples of the task's splits.
    """

    ratio: float
    form: Literal["paper", "released"]
    base: str
    base_sha256: str
    recipe: dict[str, JsonValue]
    train: Count
    train_sha256: str
    dev: Count
    dev_sha256: str
    macro_f1: tuple[float, ...]


SCHEMA: Final = 3
"""Version of the record's layout; a change that older files cannot follow raises it."""
PROTOCOL: Final = 1
"""Version of the way values are measured; records of different ones are never compared."""


class Record(Facts):
    """The results of one explainer on one task and model, with all that it takes to repeat them.

    Its file also has the sha256 of its content, added when it is written, checked when read.
    """

    schema_version: Literal[3] = Field(default=SCHEMA, alias="schema")
    task: TaskFacts
    model: ModelFacts
    explainer: ExplainerFacts
    seeds: tuple[int, ...]
    protocol: ProtocolFacts
    metrics: dict[str, MetricFacts]
    rows: RowsFacts
    cost: CostFacts
    timing: TimingFacts
    environment: EnvironmentFacts
    source: SourceFacts
    fresh: FreshFacts | None = None
