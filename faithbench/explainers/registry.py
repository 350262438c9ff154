"""Names of explainers and their settings, listed without loading torch."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, TypeVar

from faithbench.core.errors import FaithbenchError


@dataclass(frozen=True)
class Listed:
    """Where an explainer lives, and the line that `faithbench list` shows.

    One that `needs_rationale` has nothing to say of data without human ones.
    """

    family: str
    target: str
    summary: str
    needs_rationale: bool = False


def _built_in(
    family: str,
    module: str,
    entries: dict[str, tuple[str, str]],
    *,
    needs_rationale: bool = False,
) -> dict[str, Listed]:
    at = f"faithbench.explainers.{module}"
    return {
        name: Listed(family, f"{at}:{kind}", line, needs_rationale)
        for name, (kind, line) in entries.items()
    }


EXPLAINERS: dict[str, Listed] = {
    **_built_in("control", "controls", {
        "random": ("Random", "Score each token with a random number."),
        "first-tokens": ("FirstTokens", "Score tokens by their position, the first one highest."),
    }),
    **_built_in("control", "controls", {
        "human": ("Human", "Score the words that people marked as the reason, and no others."),
    }, needs_rationale=True),
    **_built_in("attention", "attention", {
        "attention": ("Attention", "Read the last block's attention, heads averaged."),
        "rollout": ("Rollout", "Multiply attention through all blocks."),
        "attention-x-gradient": (
            "AttentionXGradient", "Multiply the last block's attention by its gradient."
        ),
        "gae": ("Gae", "Accumulate attention weighted by its positive gradient over all blocks."),
        "grad-cam": ("GradCam", "Weigh the last block's heads by their mean gradient."),
        "cam": ("Cam", "Average the last block's attention gradient over heads and queries."),
        "attcat": (
            "AttCat", "Weigh each token's hidden state times gradient by the attention it receives."
        ),
    }),
    **_built_in("attention", "attention_flow", {
        "attention-flow": (
            "AttentionFlow", "Find the maximum flow through attention to each token."
        ),
    }),
    **_built_in("gradient", "gradient", {
        "gradient": ("Gradient", "Measure the gradient at each embedding."),
        "input-x-gradient": ("InputXGradient", "Multiply each embedding by its gradient."),
        "integrated-gradients": (
            "IntegratedGradients",
            "Integrate the gradient along the line from a baseline to the input.",
        ),
        "smoothgrad": ("SmoothGrad", "Average the gradient over noisy copies of the input."),
        "gradient-shap": (
            "GradientShap", "Average gradients at random points between a baseline and the input."
        ),
    }),
    **_built_in("gradient", "gradient", {
        "deep-shap": (
            "DeepShap", "Split the logit's difference to a baseline by DeepLIFT multipliers."
        ),
    }),
    **_built_in("relevance", "lrp", {
        "lrp": ("Lrp", "Propagate relevance down to the embeddings."),
        "lrp-partial": (
            "LrpPartial", "Propagate relevance down to the last block's attention only."
        ),
        "lrp-rollout": ("LrpRollout", "Roll out attention relevance weighted by its gradient."),
        "lrp-mask": ("LrpMask", "Propagate relevance through important heads only."),
    }),
    **_built_in("relevance", "lrp", {
        "attn-lrp": ("AttnLrp", "Propagate relevance through attention and softmax."),
    }),
    **_built_in("decomposition", "decomposition", {
        "alti": ("Alti", "Split each block's state into what every token adds to it."),
        "value-zeroing": (
            "ValueZeroing", "Zero each token's value and measure how block outputs turn."
        ),
    }),
    **_built_in("perturbation", "perturbation", {
        "occlusion": (
            "Occlusion", "Replace tokens by the mask token and see how far the target falls."
        ),
        "leave-one-out": ("LeaveOneOut", "Delete tokens and see how far the target falls."),
    }),
    **_built_in("perturbation", "surrogate", {
        "lime": ("Lime", "Fit a linear model to the probability of randomly masked texts."),
        "kernel-shap": (
            "KernelShap", "Estimate Shapley values by weighted regression on masked texts."
        ),
    }),
    **_built_in("perturbation", "partition", {
        "partition-shap": (
            "PartitionShap", "Split Shapley credit down a balanced tree of neighbouring tokens."
        ),
    }),
}  # fmt: skip

GROUP = "faithbench"
Kind = TypeVar("Kind", bound=type)


@dataclass(frozen=True)
class Plugin:
    """An explainer somebody else wrote: the package or file it comes from, and how to load it."""

    name: str
    origin: str
    version: str
    load: Callable[[], type[Any]]


def explainer(name: str) -> Callable[[Kind], Kind]:
    """Name an explainer class of a loose file, for `--plugin file.py`."""

    def mark(kind: Kind) -> Kind:
        kind.faithbench_name = name  # type: ignore[attr-defined]  # read by plugins_of_file
        return kind

    return mark


def installed_plugins() -> Iterator[Plugin]:
    """List entry points of the group `faithbench`, importing none of them."""
    for point in entry_points(group=GROUP):
        package = point.dist
        yield Plugin(
            point.name,
            f"package {package.name if package else 'unknown'}",
            package.version if package else "",
            _loader(point),
        )


def _loader(point: EntryPoint) -> Callable[[], type[Any]]:
    def load() -> type[Any]:
        # Whatever a stranger's module raises must not take the others with it.
        try:
            kind: type[Any] = point.load()
        except Exception as error:
            raise FaithbenchError(
                f"plugin {point.name!r} ({point.value}) does not import: "
                f"{type(error).__name__}: {error}"
            ) from error
        return kind

    return load


@cache
def plugins_of_file(path: Path) -> tuple[Plugin, ...]:
    """Import a loose file and list the classes it names with `@explainer`."""
    if not path.is_file():
        raise FaithbenchError(f"plugin file {path} does not exist; check --plugin")
    name = f"faithbench_plugin_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise FaithbenchError(f"plugin file {path} is not a Python file; check --plugin")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise FaithbenchError(
            f"plugin file {path.name} does not import: {type(error).__name__}: {error}"
        ) from error
    found = [k for k in vars(module).values() if isinstance(k, type) and _is_named(k, name)]
    if not found:
        raise FaithbenchError(
            f"plugin file {path.name} names no explainer; put @faithbench.explainer('name') "
            "above its class"
        )
    return tuple(
        # The decorator has put the name on the class, which its type does not say.
        Plugin(kind.faithbench_name, f"file {path.name}", "", _returning(kind))  # type: ignore[attr-defined]
        for kind in found
    )


def _is_named(kind: type, module: str) -> bool:
    return kind.__module__ == module and hasattr(kind, "faithbench_name")


def _returning(kind: type[Any]) -> Callable[[], type[Any]]:
    return lambda: kind
