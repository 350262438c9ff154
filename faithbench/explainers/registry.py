"""Names of explainers and their settings, listed without loading torch."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
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
from faithbench.core.spec import setting_text


@dataclass(frozen=True)
class Listed:
    """Where an explainer lives, the line that `faithbench list` shows, and the papers to cite.

    One that `needs_rationale` cannot explain data without human rationales. One that is
    `by_name_only` is not meant by `all`: most models lack what it needs.
    """

    family: str
    target: str
    summary: str
    papers: tuple[str, ...] = ()
    needs_rationale: bool = False
    by_name_only: bool = False


def _built_in(
    family: str,
    module: str,
    entries: dict[str, tuple[str, ...]],
    *,
    needs_rationale: bool = False,
    by_name_only: bool = False,
) -> dict[str, Listed]:
    at = f"faithbench.explainers.{module}"
    return {
        name: Listed(family, f"{at}:{cls}", line, tuple(papers), needs_rationale, by_name_only)
        for name, (cls, line, *papers) in entries.items()
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
        "salience": (
            "Salience",
            "Score tokens by how much they stand out, without a model.",
            "mihalcea2004textrank", "chrysostomou2021enjoy",
        ),
    }),
    **_built_in("attention", "attention", {
        "attention": (
            "Attention",
            "Read the last block's attention, heads averaged.",
            "abnar2020quantifying",
        ),
        "rollout": (
            "Rollout",
            "Multiply attention through all blocks.",
            "abnar2020quantifying",
        ),
        "attention-x-gradient": (
            "AttentionXGradient",
            "Multiply the last block's attention by its gradient.",
            "serrano2019attention", "chrysostomou2021enjoy",
        ),
        "gae": (
            "Gae",
            "Accumulate attention weighted by its positive gradient over all blocks.",
            "chefer2021generic",
        ),
        "grad-cam": (
            "GradCam",
            "Weigh the last block's heads by their mean gradient.",
            "selvaraju2017gradcam", "barkan2021gradsam", "chefer2021transformer",
        ),
        "cam": (
            "Cam",
            "Average the last block's attention gradient over heads and queries.",
            "song2024better",
        ),
        "attcat": (
            "AttCat",
            "Weigh each token's hidden state times gradient by the attention it receives.",
            "qiang2022attcat",
        ),
    }),
    **_built_in("attention", "attention_flow", {
        "attention-flow": (
            "AttentionFlow",
            "Find the maximum flow through attention to each token.",
            "abnar2020quantifying",
        ),
    }),
    **_built_in("gradient", "gradient", {
        "gradient": (
            "Gradient",
            "Measure the gradient at each embedding.",
            "simonyan2014deep",
        ),
        "input-x-gradient": (
            "InputXGradient",
            "Multiply each embedding by its gradient.",
            "shrikumar2017learning",
        ),
        "integrated-gradients": (
            "IntegratedGradients",
            "Integrate the gradient along the line from a baseline to the input.",
            "sundararajan2017axiomatic",
        ),
        "smoothgrad": (
            "SmoothGrad",
            "Average the gradient over noisy copies of the input.",
            "smilkov2017smoothgrad",
        ),
        "gradient-shap": (
            "GradientShap",
            "Average gradients at random points between a baseline and the input.",
            "lundberg2017unified", "erion2021improving",
        ),
    }),
    **_built_in("gradient", "gradient", {
        "deep-shap": (
            "DeepShap",
            "Split the logit's difference to a baseline by DeepLIFT multipliers.",
            "lundberg2017unified", "shrikumar2017learning",
        ),
    }),
    **_built_in("relevance", "lrp", {
        "lrp": (
            "Lrp",
            "Propagate relevance down to the embeddings.",
            "bach2015pixel", "chefer2021transformer",
        ),
        "lrp-partial": (
            "LrpPartial",
            "Propagate relevance down to the last block's attention only.",
            "voita2019analyzing",
        ),
        "lrp-rollout": (
            "LrpRollout",
            "Roll out attention relevance weighted by its gradient.",
            "chefer2021transformer",
        ),
        "lrp-mask": (
            "LrpMask",
            "Propagate relevance through important heads only.",
            "song2024better",
        ),
    }),
    **_built_in("relevance", "lrp", {
        "attn-lrp": (
            "AttnLrp",
            "Propagate relevance through attention and softmax.",
            "achtibat2024attnlrp",
        ),
    }),
    **_built_in("decomposition", "decomposition", {
        "alti": (
            "Alti",
            "Split each block's state into what every token adds to it.",
            "ferrando2022measuring", "kobayashi2021incorporating", "modarressi2022globenc",
        ),
        "value-zeroing": (
            "ValueZeroing",
            "Zero each token's value and measure how block outputs turn.",
            "mohebbi2023quantifying",
        ),
    }),
    **_built_in("perturbation", "perturbation", {
        "occlusion": (
            "Occlusion",
            "Replace tokens by the mask token and see how far the target falls.",
            "zeiler2014visualizing", "li2016understanding",
        ),
        "leave-one-out": (
            "LeaveOneOut",
            "Delete tokens and see how far the target falls.",
            "li2016understanding",
        ),
    }),
    **_built_in("perturbation", "surrogate", {
        "lime": (
            "Lime",
            "Fit a linear model to the probability of randomly masked texts.",
            "ribeiro2016should",
        ),
        "kernel-shap": (
            "KernelShap",
            "Estimate Shapley values by weighted regression on masked texts.",
            "lundberg2017unified",
        ),
    }),
    **_built_in("perturbation", "partition", {
        "partition-shap": (
            "PartitionShap",
            "Split Shapley credit down a balanced tree of neighbouring tokens.",
            "owen1977values", "lundberg2017unified",
        ),
    }),
    **_built_in("distilled", "l2e", {
        "l2e": (
            "L2e",
            "Ask a small network that learned to explain as another explainer does.",
            "situ2021learning",
        ),
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


def explainer(name: str, *, papers: tuple[str, ...] = ()) -> Callable[[Class], Class]:
    """Name an explainer class of a loose file, for `--plugin file.py`, and the papers to cite.

    A paper is a key of faithbench's own or an entry of BibTeX.
    """

    def mark(cls: Class) -> Class:
        setattr(cls, EXPLAINER_MARK, name)
        if papers:
            cls.papers = papers  # type: ignore[attr-defined]  # an optional member of the protocol
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


def written_settings(listed: Listed) -> dict[str, str]:
    """Return a built-in explainer's settings with their defaults, as a user would type them.

    They are read from the source: importing the class would load torch, which takes seconds.
    """
    module, _, name = listed.target.partition(":")
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None, f"{module} is a part of faithbench"
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    (cls,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    return {
        field.target.id: setting_text(ast.literal_eval(field.value))
        for field in cls.body
        if isinstance(field, ast.AnnAssign)
        and isinstance(field.target, ast.Name)
        and field.value is not None
        and not ast.unparse(field.annotation).startswith("ClassVar")
    }
