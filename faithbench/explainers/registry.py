"""Names of explainers and their settings, listed without loading torch."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from faithbench.core.plugins import (
    EXPLAINER_MARK,
    Plugin,
    installed,
    marked_objects,
    module_of_file,
    plugin_of_file,
)


@dataclass(frozen=True)
class Listed:
    """Where an explainer lives, and the line that `faithbench list` shows.

    One that `needs_rationale` cannot explain data without human rationales. One that is
    `by_name_only` is not meant by `all`: most models lack what it needs.
    """

    family: str
    target: str
    summary: str
    needs_rationale: bool = False
    by_name_only: bool = False


def _built_in(
    family: str,
    module: str,
    entries: dict[str, tuple[str, str]],
    *,
    needs_rationale: bool = False,
    by_name_only: bool = False,
) -> dict[str, Listed]:
    at = f"faithbench.explainers.{module}"
    return {
        name: Listed(family, f"{at}:{cls}", line, needs_rationale, by_name_only)
        for name, (cls, line) in entries.items()
    }


CONTROL = "control"

EXPLAINERS: dict[str, Listed] = {
    **_built_in(CONTROL, "controls", {
        "random": ("Random", "Score each token with a random number."),
        "first-tokens": ("FirstTokens", "Score tokens by their position, the first one highest."),
    }),
    **_built_in(CONTROL, "controls", {
        "human": ("Human", "Score the words that people marked as the reason, and no others."),
    }, needs_rationale=True),
    **_built_in(CONTROL, "salience", {
        "salience": ("Salience", "Score tokens by how much they stand out, without a model."),
    }),
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
    **_built_in("distilled", "l2e", {
        "l2e": ("L2e", "Ask a small network that learned to explain as another explainer does."),
    }, by_name_only=True),
}  # fmt: skip


def is_control(name: str) -> bool:
    """Return whether a name is that of a control, which others are compared with.

    A control does not read the model (`reads_model` of its class is False); tables show it and
    never rank it.
    """
    return name in EXPLAINERS and EXPLAINERS[name].family == CONTROL


GROUP = "faithbench"
Class = TypeVar("Class", bound=type)


def explainer(name: str) -> Callable[[Class], Class]:
    """Name an explainer class of a loose file, for `--plugin file.py`."""

    def mark(cls: Class) -> Class:
        setattr(cls, EXPLAINER_MARK, name)
        return cls

    return mark


def installed_plugins() -> Iterator[Plugin]:
    """List entry points of the group `faithbench`, importing none of them."""
    return installed(GROUP)


def plugins_of_file(path: Path) -> tuple[Plugin, ...]:
    """Import a loose file and list the classes it names with `@explainer`."""
    return tuple(
        plugin_of_file(path, getattr(cls, EXPLAINER_MARK), cls)
        for cls in marked_objects(module_of_file(path), EXPLAINER_MARK)
        if isinstance(cls, type)  # an instance has its class's name, too
    )
