"""What built-in explainers were seen to serve and to cost, kept in `served.json` next to this file.

`python -m faithbench.testing.served` measures it again, in a minute or two: the checks of
`conformance` on the tiny models, and the passes through the bundled model on two texts. The tests
that hold explainers to the checks hold this file to them, too.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from faithbench.core.cost import forward_equivalents
from faithbench.core.errors import CannotServeError
from faithbench.core.files import replace_file

if TYPE_CHECKING:
    from faithbench.explainers.selection import Selected
    from faithbench.models.model import Model

SMALL = {
    "lrp-mask": "lrp-mask:mask=ones",
    "integrated-gradients": "integrated-gradients:steps=5",
    "smoothgrad": "smoothgrad:samples=2",
    "gradient-shap": "gradient-shap:samples=2",
    "lime": "lime:samples=16",
    "kernel-shap": "kernel-shap:samples=16",
    "partition-shap": "partition-shap:evaluations=16",
}
"""Settings for tiny models: few samples, and no statistics of heads. The rules are the same."""

TEXTS = (
    "A dull, tiresome film.",
    "Never sentimental, never cold, the director handles the boy's illness with perfect tact, and "
    "the two leads make a thin story worth the two hours that it takes.",
)
"""Texts on which costs are counted; the second is about four times as long."""

_FILE = Path(__file__).with_name("served.json")


@dataclass(frozen=True)
class Cost:
    """The tokens of a text, special ones included, and what explaining it takes in forwards."""

    tokens: int
    forward_equivalents: float


@dataclass(frozen=True)
class Served:
    """Architectures whose tiny models an explainer explains, and its cost on the bundled model.

    `refusal` is why it serves none of the tiny models, "" if it serves some.
    """

    architectures: tuple[str, ...]
    refusal: str
    costs: tuple[Cost, ...]


@cache
def served() -> dict[str, Served]:
    """Return what is known of the built-in explainers, by name."""
    return {
        name: Served(
            tuple(facts["architectures"]),
            facts["refusal"],
            tuple(Cost(**cost) for cost in facts["costs"]),
        )
        for name, facts in json.loads(_FILE.read_text(encoding="utf-8")).items()
    }


def all_architectures() -> tuple[str, ...]:
    """Return the architectures that explainers are tried on."""
    from faithbench.testing.tiny import ARCHITECTURES, PARTLY_SERVED, WITHOUT_BLOCKS

    return (*ARCHITECTURES, *WITHOUT_BLOCKS, *PARTLY_SERVED)


def measure_architectures(name: str) -> tuple[tuple[str, ...], str]:
    """Return the architectures that an explainer conforms on, and why if there are none."""
    from faithbench.explainers.selection import find_explainers
    from faithbench.testing.conformance import check_model
    from faithbench.testing.tiny import tiny_model

    (selected,) = find_explainers(SMALL.get(name, name))
    conforming, refusal = [], ""
    for architecture in all_architectures():
        try:
            check_model(selected.explainer, tiny_model(architecture), longest=False)
        except CannotServeError as error:
            refusal = refusal or str(error).partition("; ")[0]
        else:
            conforming.append(architecture)
    return tuple(conforming), "" if conforming else refusal


def measure_costs(selected: Selected, model: Model) -> tuple[Cost, ...]:
    """Count the passes that an explainer takes for each of the texts."""
    from faithbench.models.session import Session
    from faithbench.run.one_text import explain_text

    costs = []
    for text in TEXTS:
        with Session(model) as session:
            attribution = explain_text(session, "text", selected, text).attribution
        counts = attribution.forwards, attribution.backwards, attribution.elsewhere
        cost = forward_equivalents(*(count or 0 for count in counts))
        costs.append(Cost(len(attribution.encoding.ids), round(cost, 3)))
    return tuple(costs)


def main() -> None:
    """Measure all built-in explainers, and write the file."""
    from faithbench.explainers.registry import EXPLAINERS
    from faithbench.explainers.selection import find_explainers
    from faithbench.models.model import load_model

    model = load_model("bundled:sst2", labels=("negative", "positive"), device="cpu")
    measured = {}
    for name in EXPLAINERS:
        (selected,) = find_explainers(name)
        entry = Served(*measure_architectures(name), measure_costs(selected, model))
        measured[name] = asdict(entry)
        print(name, entry)
    replace_file(_FILE, (json.dumps(measured, indent=1, sort_keys=True) + "\n").encode())


if __name__ == "__main__":
    main()
