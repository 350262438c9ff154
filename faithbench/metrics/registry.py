'''Metrics: what each number means, and how it comes about.

A metric is one function with its facts beside it, and a new one is one file. This is a whole
plugin, for `faithbench run --plugin drop.py --metrics aopc,drop_at_20 ...`:

    import numpy as np

    from faithbench import metric
    from faithbench.core.erasure import top_count, without


    def without_a_fifth(case):
        """Plan one input: all tokens but the top 20%."""
        return np.stack([without(case, top_count(case.n, 20))])


    @metric(
        "drop_at_20",
        family="faithfulness",
        higher_is_better=True,
        bounds=(-1, 1),
        plan=without_a_fifth,
    )
    def drop_at_20(case, outputs):
        """Fall of the target's probability without the top 20% of the tokens."""
        return float(case.probability - outputs.probability[0])

The first paragraph of the docstring is what `faithbench list metrics` shows. `kind` says what the
function is given, and what it returns; None is a value that is not defined.

- `case` (the default): `(case, outputs)`, one example with its scores, and what the model makes of
  the inputs that `plan` asked for. Returns a number. Without a plan the scores alone count.
- `word`: `(words)`, the `WordScores` of one example, or of its sentences with `unit="sentences"`.
  Returns a number. The run maps it over examples and seeds.
- `table`: `(table)`, the `ExplainedTexts` of all examples, with their neighbours. Returns a list
  with a number for each example.
- `influence`: `(weights, influence)`, the sizes of one example's scores, and the `Influence` of its
  words and of the model's inner representations. Returns a number. For classifiers.
- `measure`: taken by the run itself, of the explainer at work or of the model. What the function
  is given is an agreement with `faithbench.run`, so that no plugin can bring one.
- `trained`: of classifiers that a command of its own trains, `faithbench fresh`; no plugin can
  bring one either.

`Metric` and its six children list the facts. An installed package names its metrics as entry
points, under the name that the decorator gives them too:

    [project.entry-points."faithbench.metrics"]
    drop_at_20 = "my_package.drop:drop_at_20"

What a plugin brings runs if it is named, and never as a part of `all`: what that word means must
not depend on what is installed.
'''

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict, TypeVar, Unpack, get_args

import numpy as np

from faithbench.core.errors import FaithbenchError, NoMemoryError, is_out_of_memory, unknown
from faithbench.core.plugins import (
    METRIC_MARK,
    Plugin,
    installed,
    marked_objects,
    module_of_file,
    plugin_of_file,
)
from faithbench.core.text import readable
from faithbench.core.types import Bools, Case, Floats, Outputs
from faithbench.metrics.explained import ExplainedTexts, Unit
from faithbench.metrics.word_scores import WordScores

if TYPE_CHECKING:  # whose file defines metrics, and so imports this one
    from faithbench.metrics.influence import Influence

GROUP = "faithbench.metrics"
"""The entry-point group in which installed packages name their metrics."""

Family = Literal["faithfulness", "stability", "plausibility", "speed"]
FAMILIES: tuple[Family, ...] = get_args(Family)
Need = Literal["answers", "rationale", "sentences", "seeds"]
Kind = Literal["case", "word", "table", "influence", "measure", "trained"]
Aspect = Literal["comprehensiveness", "sufficiency", "sign"]
"""What faithfulness metrics ask: does it fall without the best tokens, does it stay with them
alone, and do tokens against the prediction speak against it?"""
ASPECTS: tuple[Aspect, ...] = get_args(Aspect)

Plan = Callable[[Case], Bools]
Enough = Callable[[Outputs], bool]
Function = TypeVar("Function", bound=Callable[..., object])


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


class Facts(TypedDict, total=False):
    """What may stand beside a metric's function; see `Metric` and its children."""

    family: Required[Family]
    higher_is_better: Required[bool | None]
    bounds: Required[tuple[float, float]]
    version: int
    title: str
    opt_in: bool
    need: Need
    headline: bool
    aspect: Aspect
    ranked: bool
    blank: float
    attainable: float
    papers: tuple[str, ...]
    plan: Plan
    enough: Enough
    needs_bounds: bool
    keeps_curve: bool
    tolerance: float
    unit: Unit
    needs_encoder: bool
    per_example: bool
    command: str


_KINDS: dict[Kind, type[Metric]] = {
    "case": CaseMetric,
    "word": WordMetric,
    "table": TableMetric,
    "influence": InfluenceMetric,
    "measure": Measure,
    "trained": Trained,
}
# What `--metrics` can read: a comma or a minus in front has a meaning there, and the leaderboard
# writes a version after an @.
_NAME = re.compile(r"[A-Za-z0-9_][^\s,@]*")


def metric(
    name: str, *, kind: Kind = "case", **facts: Unpack[Facts]
) -> Callable[[Function], Function]:
    """Make a metric of a function, with its facts beside it; the module's docstring shows how.

    `family` (faithfulness, stability, plausibility or speed), `higher_is_better` and `bounds` are
    always given. The function itself is left as it is.
    """

    def mark(score: Function) -> Function:
        made = _make(name, kind, score, facts)
        # A function may compute several metrics: decorators can be stacked.
        setattr(score, METRIC_MARK, (*metrics_by(score), made))
        return score

    return mark


def _make(name: str, kind: Kind, score: Callable[..., object], facts: Facts) -> Metric:
    """Build a metric, refusing what no user could ask for and no table could show."""
    if kind not in _KINDS:
        raise unknown("kind of metric", kind, _KINDS)
    cls: Any = _KINDS[kind]
    known = {field.name for field in fields(cls)} - {"name", "summary", "score"}
    for fact in facts:
        if fact not in known:
            raise unknown(f"fact of a {kind} metric", fact, known)
    if missing := [fact for fact in ("family", "higher_is_better", "bounds") if fact not in facts]:
        raise FaithbenchError(
            f"metric {name!r} does not say its {' and '.join(missing)}; write it beside the name, "
            "such as family='faithfulness', higher_is_better=True, bounds=(0, 1)"
        )
    if not _NAME.fullmatch(name) or name in (*FAMILIES, "all"):
        raise FaithbenchError(
            f"a metric cannot be named {name!r}; choose a word without commas and spaces that is "
            "no family's name"
        )
    made: Metric = cls(name=name, summary=_summary(name, score), score=score, **facts)
    if made.family not in FAMILIES:
        raise unknown("family of metrics", made.family, FAMILIES)
    return made


def _summary(name: str, score: Callable[..., object]) -> str:
    """Return the first paragraph of a function's docstring as one line."""
    first = (score.__doc__ or "").strip().split("\n\n")[0]
    if not first:
        raise FaithbenchError(
            f"metric {name!r} has no docstring; say in a sentence what the number means"
        )
    return " ".join(first.split())


def metrics_by(score: object) -> tuple[Metric, ...]:
    """Return the metrics that a decorated function computes."""
    made: tuple[Metric, ...] = getattr(score, METRIC_MARK, ())
    return made


METRICS: dict[str, Metric] = {}
"""The metrics that come with faithbench, in the order of the catalogue."""


def metrics_in(module: ModuleType) -> list[Metric]:
    """Return the metrics that a module defines with the decorator, in the file's order."""
    return [made for score in marked_objects(module, METRIC_MARK) for made in metrics_by(score)]


def register(metrics: Iterable[Metric]) -> None:
    """Add metrics to those that come with faithbench."""
    for made in metrics:
        if made.name in METRICS:
            raise FaithbenchError(f"two metrics are named {made.name!r}; rename one")
        METRICS[made.name] = made


def installed_metrics() -> Iterator[Plugin]:
    """List the metrics of installed packages, importing none of them."""
    return installed(GROUP)


def metrics_of_file(path: Path) -> tuple[Plugin, ...]:
    """Import a loose file and list the metrics it defines."""
    return tuple(
        plugin_of_file(path, made.name, score)
        for score in marked_objects(module_of_file(path.resolve()), METRIC_MARK)
        for made in metrics_by(score)
    )


def metric_of(plugin: Plugin) -> Metric:
    """Load the metric of a plugin, refusing what is none and a name that is taken."""
    if plugin.name in METRICS:
        raise FaithbenchError(
            f"metric {plugin.name!r} is defined by faithbench itself and {plugin.origin}; "
            "rename the latter"
        )
    made = {found.name: found for found in metrics_by(plugin.load())}.get(plugin.name)
    if made is None:
        raise FaithbenchError(
            f"plugin {plugin.name!r} of {plugin.origin} is not a metric: it must be a function "
            f"below @faithbench.metric({plugin.name!r}, ...)"
        )
    if isinstance(made, Measure | Trained):
        noun, taker = (
            ("measure", "the run") if isinstance(made, Measure) else ("score", "a command")
        )
        raise FaithbenchError(
            f"metric {plugin.name!r} of {plugin.origin} is a {noun}, which only {taker} itself "
            "takes; make it a case, word, table or influence metric"
        )
    return made


def find_metrics(
    names: str, there: Iterable[Need] | None = None, files: Iterable[Path] = ()
) -> tuple[Metric, ...]:
    """Resolve a comma-separated list of metrics or families, or `all`.

    Families and `all` leave out what runs on request only: name those. `all` also leaves out
    what needs something that is not `there`, if that is given. A name or family after a minus
    is taken out of what stands before it: `all,-tau_loo`. Names are built in, of installed
    plugins, or of loose `files`.
    """
    plugins = _plugins_by_name(files)
    present = None if there is None else {None, *there}
    chosen: dict[str, Metric] = {}
    for entry in (entry.strip() for entry in names.split(",")):
        named = _named(entry.removeprefix("-"), present, plugins)
        if entry.startswith("-"):
            chosen = {name: metric for name, metric in chosen.items() if name not in named}
        else:
            chosen |= named
    if not chosen:
        raise FaithbenchError(f"--metrics {names} leaves nothing to compute; name what is wanted")
    return tuple(chosen.values())


def _plugins_by_name(files: Iterable[Path]) -> dict[str, list[Plugin]]:
    loose = [plugin for path in files for plugin in metrics_of_file(path)]
    for plugin in loose:
        metric_of(plugin)  # a file that is given by hand is refused before anything runs
    by_name: dict[str, list[Plugin]] = {}
    for plugin in (*installed_metrics(), *loose):
        by_name.setdefault(plugin.name, []).append(plugin)
    return by_name


def _named(
    name: str, present: set[Need | None] | None, plugins: dict[str, list[Plugin]]
) -> dict[str, Metric]:
    """Return the metrics that one entry of a list stands for."""
    if name in plugins:
        if len(plugins[name]) > 1:
            origins = " and ".join(sorted(plugin.origin for plugin in plugins[name]))
            raise FaithbenchError(f"metric {name!r} is defined by {origins}; uninstall one")
        return {name: metric_of(plugins[name][0])}
    if name in METRICS:
        return {name: METRICS[name]}
    if name not in FAMILIES and name != "all":
        raise unknown("metric", name, [*METRICS, *plugins, *FAMILIES, "all"])
    return {
        m.name: m
        for m in sorted(METRICS.values(), key=lambda m: FAMILIES.index(m.family))
        if not m.opt_in
        and (name == m.family or (name == "all" and (present is None or m.need in present)))
    }


def case_metrics(metrics: Iterable[Metric]) -> tuple[CaseMetric, ...]:
    """Return those that ask the model about erased inputs, one example at a time."""
    return tuple(m for m in metrics if isinstance(m, CaseMetric))


def influence_metrics(metrics: Iterable[Metric]) -> tuple[InfluenceMetric, ...]:
    """Return those that compare scores with what moves the model, also inside."""
    return tuple(m for m in metrics if isinstance(m, InfluenceMetric))


def measures_per_example() -> list[Measure]:
    """Return what the run measures of an explainer per example, which controls do not have."""
    return [m for m in METRICS.values() if isinstance(m, Measure) and m.per_example]


def text_metrics(metrics: Iterable[Metric]) -> tuple[TextMetric, ...]:
    """Return those that read the words and scores of examples, and no model."""
    return tuple(m for m in metrics if isinstance(m, TextMetric))


def wanted(score: Callable[..., object], metrics: Sequence[Metric]) -> Metric | None:
    """Return the metric that a function computes, if it is among those asked for."""
    return next((made for made in metrics_by(score) if made in metrics), None)


def title_of(name: str) -> str:
    """Return what tables call a metric; one that is not known here goes by its name."""
    return (name in METRICS and METRICS[name].title) or name


def needs_encoder(name: str) -> bool:
    """Return whether a metric's values depend on a sentence encoder."""
    made = METRICS.get(name)
    return isinstance(made, TableMetric) and made.needs_encoder


def is_tested_by_mean(name: str) -> bool:
    """Return whether only the mean of a metric's values has a meaning, and not their order."""
    return isinstance(METRICS.get(name), Trained)


def is_outdated(name: str, version: int) -> bool:
    """Return whether values were computed by a former version of a metric."""
    return name in METRICS and version < METRICS[name].version


def is_headline(name: str) -> bool:
    """Return whether short tables show a metric."""
    return name in METRICS and METRICS[name].headline
