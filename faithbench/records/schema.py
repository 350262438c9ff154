"""The parts of a record: frozen, with closed schemas."""

from __future__ import annotations

from typing import Final, Literal

from pydantic import Field, field_validator

from faithbench.core.erasure import Operator
from faithbench.core.schema import Count, Facts
from faithbench.core.types import Long
from faithbench.data.task_schema import Rationale, Source


class SpanFacts(Facts):
    """How many rationale spans the model reads whole, up to where its input ends, or not."""

    whole: Count
    cut: Count
    lost: Count


class TaskFacts(Facts):
    """Which examples were explained; `rationale` says who marked them, if anyone.

    `rationale_share` is the mean share of words that are marked, of those the model reads.
    """

    name: str
    version: int
    kind: Literal["classification", "pair", "qa"]
    split: str
    n: Count
    source: Source
    data_sha256: str
    data_checked: bool
    rationale: Rationale
    rationale_share: float | None = None
    spans: SpanFacts | None = None


class PrecisionFacts(Facts):
    """How far half precision moved the probability of the prediction, on some inputs."""

    inputs: Count
    largest_shift: float
    mean_shift: float
    changed_predictions: Count


class ModelFacts(Facts):
    """Which network; `accuracy` (of answers: exact match) is on the evaluated examples.

    `truncated` counts the texts that were cut. `tpr_drop` is how much of its true-positive rate
    the network loses when the rationale's words are erased.

    `precision` compares a network in half precision with its float32 self.
    """

    name: str
    revision: str | None
    weights_sha256: str
    dtype: str
    accuracy: float | None
    truncated: Count
    labels: tuple[str, ...]
    tpr_drop: float | None = None
    precision: PrecisionFacts | None = None


class ExplainerFacts(Facts):
    """Which explainer, from which package; `assets` maps a file it read to its sha256.

    `largest_gap` is how far, at most, scores miss the sum that the method promises.
    """

    name: str
    package: str
    version: str
    settings: dict[str, bool | int | float | str]
    assets: dict[str, str]
    largest_gap: float | None = None


class ProtocolFacts(Facts):
    """How tokens were erased, how long texts were read, by which version of docs/protocol.md.

    `encoder` names the sentence encoder that found semantic neighbours, if there was one.
    """

    version: int
    operator: Operator
    erasure_token: str
    long: Long = "truncate"
    encoder: str | None = None


class MetricFacts(Facts):
    """Summary of one metric; `skipped` counts the examples without a value.

    `proxy` marks agreement with rationales that no person marked: another column than theirs.
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
    """The file of per-example results that lies beside the record."""

    file: str
    sha256: str

    @field_validator("file")
    @classmethod
    def _bare(cls, file: str) -> str:
        if file in ("", ".", "..") or "/" in file or "\\" in file:
            raise ValueError(f"{file!r} should be a bare file name, without a folder")
        return file


class CostFacts(Facts):
    """Work that every machine counts alike: rows through the network.

    The first two are the metrics'; the others the explainer's, per example and seed, and None
    where nobody here counted them: of scores that were made elsewhere.
    """

    rows_asked: Count
    distinct_rows: Count
    forwards_per_example: float | None
    backwards_per_example: float | None
    forward_equivalents_per_example: float | None


class TimingFacts(Facts):
    """What clock and memory said: the only part in which two identical runs differ.

    `alone` is how many examples, spread over all lengths, were explained once more for this:
    one at a time and warm, by this explainer alone, so that nobody beside it matters. Of them
    come the median with its interval, and the highest memory above the loaded model.
    `seconds_total` is what the run itself took, with shared passes counted in full. Of scores
    that were made elsewhere there is at most that: how long the process that made them took.
    """

    alone: Count = 0
    seconds_median: float | None = None
    seconds_ci95: tuple[float, float] | None = None
    peak_memory_bytes: Count | None = None
    seconds_total: float | None


class EnvironmentFacts(Facts):
    """Versions and kind of machine, never its name."""

    packages: dict[str, str]
    python: str
    platform: str
    device: str
    threads: int


class SourceFacts(Facts):
    """Git state of the checkout that ran; both None outside one."""

    commit: str | None
    dirty: bool | None


SCHEMA: Final = 1
PROTOCOL: Final = 1


class Record(Facts):
    """One cell of the leaderboard with everything needed to judge or repeat it."""

    schema_version: Literal[1] = Field(default=SCHEMA, alias="schema")
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
