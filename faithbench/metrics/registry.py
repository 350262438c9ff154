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

`Metric` and its six children, in `kinds`, list the facts. An installed package names its metrics as
entry points, under the name that the decorator gives them too:

    [project.entry-points."faithbench.metrics"]
    drop_at_20 = "my_package.drop:drop_at_20"

What a plugin brings runs if it is named, and never as a part of `all`: what that word means must
not depend on what is installed.
'''

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import fields
from pathlib import Path
from types import ModuleType
from typing import Any, Literal, Required, TypedDict, TypeVar, Unpack

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.plugins import (
    METRIC_MARK,
    Plugin,
    installed,
    marked_objects,
    module_of_file,
    plugin_of_file,
)
from faithbench.metrics.explained import Unit
from faithbench.metrics.kinds import (
    FAMILIES,
    Aspect,
    CaseMetric,
    Enough,
    Family,
    InfluenceMetric,
    Measure,
    Metric,
    Need,
    Plan,
    TableMetric,
    TextMetric,
    Trained,
    WordMetric,
)

GROUP = "faithbench.metrics"
"""The entry-point group in which installed packages name their metrics."""

Kind = Literal["case", "word", "table", "influence", "measure", "trained"]
Function = TypeVar("Function", bound=Callable[..., object])


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
