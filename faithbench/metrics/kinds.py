"""The kinds of metrics: what a number means, what its function is given, and what it may return."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np

from faithbench.core.errors import FaithbenchError, NoMemoryError, is_out_of_memory
from faithbench.core.text import readable
from faithbench.core.types import Bools, Case, Floats, Outputs
from faithbench.metrics.explained import ExplainedTexts, Unit
from faithbench.metrics.word_scores import WordScores

if TYPE_CHECKING:  # whose file defines metrics, and so imports this one
    from faithbench.metrics.influence import Influence

Family = Literal["faithfulness", "stability", "plausibility", "speed"]
FAMILIES: tuple[Family, ...] = get_args(Family)
Need = Literal["answers", "rationale", "sentences", "seeds"]
Aspect = Literal["comprehensiveness", "sufficiency", "sign"]
"""What faithfulness metrics ask: does it fall without the best tokens, does it stay with them
alone, and do tokens against the prediction speak against it?"""
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)

Plan = Callable[[Case], Bools]
Enough = Callable[[Outputs], bool]


def no_rows(case: Case) -> Bools:
    """Plan nothing: the scores alone say it."""
    return np.ones((0, len(case.every_score)), dtype=bool)


@dataclass(frozen=True, kw_only=True)
class Metric:
    """A number with its meaning: direction, range and version of the formula.

    - `higher_is_better` is None where neither direction is.
    - `bounds` are the lowest and the highest value; others are refused.
    - `title` is what tables show, if not the name.
    - `opt_in`: it runs only if it is named, not as one of its family or of `all`.
    - `need` is what a task or a run must have: accepted answers, rationales, rationales that mark
      whole sentences, or an explainer that is run under several seeds.
    - `headline`: the leaderboard's short tables show it.
    - `aspect`: the side of faithfulness that it measures. Metrics of one aspect agree so well that
      the leaderboard ranks by only one of them, the one that is `ranked`.
    - `blank` is what a missing value counts as in that rank: what doing nothing would give.
    - `attainable` is the value of a perfect explainer, where one is known to exist.
    - `papers` are those to cite: keys of `core/papers.bib`, or entries of BibTeX.
    """

    name: str
    family: Family
    higher_is_better: bool | None
    bounds: tuple[float, float]
    summary: str
    version: int = 1
    title: str = ""
    opt_in: bool = False
    need: Need | None = None
    headline: bool = False
    aspect: Aspect | None = None
    ranked: bool = False
    blank: float | None = None
    attainable: float | None = None
    papers: tuple[str, ...] = ()

    @property
    def low(self) -> float:
        """The lowest value."""
        return self.bounds[0]

    @property
    def high(self) -> float:
        """The highest value."""
        return self.bounds[1]

    @property
    def in_rows(self) -> bool:
        """Whether examples have values of their own, which their rows keep."""
        return True

    @property
    def per_seed(self) -> bool:
        """Whether there is a value under every seed; what compares seeds has one for all."""
        return self.need != "seeds"

    def checked(self, value: float | None) -> float | None:
        """Return a value as a float, refusing one outside the metric's range."""
        slack = 1e-9
        if value is not None and not self.low - slack <= value <= self.high + slack:
            raise FaithbenchError(
                f"{self.name} is {value}, outside its range [{self.low}, {self.high}]; "
                "this is a fault of the metric: please report it"
            )
        return None if value is None else float(value)

    @contextmanager
    def naming_failures(self, example: str = "") -> Iterator[None]:
        """Turn what the metric's own code raises into one line: metric, example and error."""
        try:
            yield
        except FaithbenchError:
            raise  # a sentence already
        except Exception as error:
            kind = NoMemoryError if is_out_of_memory(error) else FaithbenchError
            on = f" on {readable(example, 60)}" if example else ""
            raise kind(
                f"metric {self.name!r} failed{on}: {type(error).__name__}: "
                f"{readable(str(error)) or 'no message'} (--debug shows the traceback)"
            ) from error


@dataclass(frozen=True, kw_only=True)
class CaseMetric(Metric):
    """A metric of one example, with the inputs it wants the model to read.

    - `plan` returns keep-masks [rows, tokens of the input]; `score` gets what the model makes of
      those rows, and returns the value, or None where it is not defined.
    - `enough`: rows are asked for in their order until it is true of the outputs so far, and
      `score` gets those.
    - `needs_bounds`: the case holds the lowest and highest AOPC that the input allows.
    - `keeps_curve`: the probabilities of its rows are kept with the results, and the value is the
      mean of how far they lie below the full input's.
    - `tolerance` is how far values may differ between machines, whose float32 differ.
    """

    score: Callable[[Case, Outputs], float | None]
    plan: Plan = no_rows
    enough: Enough | None = None
    needs_bounds: bool = False
    keeps_curve: bool = False
    tolerance: float = 1e-4

    def rows(self, case: Case, example: str = "") -> Bools:
        """Plan the rows of a case; where nothing may be erased there are none."""
        if not case.n:
            return no_rows(case)
        with self.naming_failures(example):
            keeps = np.asarray(self.plan(case))
        if keeps.ndim != 2 or keeps.shape[1] != len(case.every_score) or keeps.dtype != np.bool_:
            raise FaithbenchError(
                f"metric {self.name!r} planned inputs of shape {keeps.shape} and type "
                f"{keeps.dtype} for {len(case.every_score)} tokens; a plan is an array of bools, "
                "one row per input and one column per token"
            )
        return keeps

    def value(self, case: Case, outputs: Outputs, example: str = "") -> float | None:
        """Score a case, refusing a value outside the metric's range."""
        if not case.n and self.plan is not no_rows:
            return None
        with self.naming_failures(example):
            return self.checked(self.score(case, outputs))


@dataclass(frozen=True, kw_only=True)
class WordMetric(Metric):
    """A metric of one example's words, or of its sentences as if they were words (`unit`)."""

    score: Callable[[WordScores], float | None]
    unit: Unit = "words"

    def values(self, table: ExplainedTexts) -> list[float | None]:
        """Score each example by itself, refusing a value outside the metric's range."""
        units = zip(table.units(self.unit), table.examples, strict=True)
        return [self._value(words, example.id) for words, example in units]

    def _value(self, words: WordScores, example: str) -> float | None:
        with self.naming_failures(example):
            return self.checked(self.score(words))


@dataclass(frozen=True, kw_only=True)
class TableMetric(Metric):
    """A metric that compares examples: one value, or None, for each of them.

    `needs_encoder`: it asks for neighbours in meaning, so that its values depend on a sentence
    encoder, and those of two encoders are never mixed.
    """

    score: Callable[[ExplainedTexts], list[float | None]]
    needs_encoder: bool = False

    def values(self, table: ExplainedTexts) -> list[float | None]:
        """Score all examples, refusing a value outside the metric's range."""
        with self.naming_failures():
            values = [self.checked(value) for value in self.score(table)]
        if len(values) != len(table.words):
            raise FaithbenchError(
                f"metric {self.name!r} gave {len(values)} values for {len(table.words)} examples; "
                "it must give one, or None, for each"
            )
        return values


@dataclass(frozen=True, kw_only=True)
class InfluenceMetric(Metric):
    """A metric that compares one example's scores with what moves the model, also inside."""

    score: Callable[[Floats, Influence], float | None]

    def value(self, scores: Floats, influence: Influence, example: str = "") -> float | None:
        """Score an example, refusing a value outside the metric's range."""
        with self.naming_failures(example):
            return self.checked(self.score(np.abs(scores), influence))


@dataclass(frozen=True, kw_only=True)
class Measure(Metric):
    """A number that the run itself takes, of the explainer at work or of the model.

    `score` makes it of what the run has seen. With `per_example`, rows keep it, once for all
    seeds; else the record has it elsewhere. Scores that are only read back have no measures: there
    is no explainer to watch.
    """

    score: Callable[..., float | None]
    per_example: bool = False

    @property
    def in_rows(self) -> bool:
        """Whether examples have values of their own, which their rows keep."""
        return self.per_example

    @property
    def per_seed(self) -> bool:
        """Whether there is a value under every seed: measures are taken under one."""
        return False


@dataclass(frozen=True, kw_only=True)
class Trained(Metric):
    """A score of classifiers that were trained on what an explainer chooses.

    `command` is what computes it; a run does not train. The score is one of a whole split, not
    of an example, so `score` takes predicted classes, gold classes and the number of classes and
    returns values that have the score as their mean. Only that mean has a meaning: tests are of
    means, not of ranks.
    """

    score: Callable[[Sequence[int], Sequence[int], int], list[float]]
    command: str


TextMetric = WordMetric | TableMetric
"""Those that are computed when all examples are explained, and no network is needed any more."""
