"""Every explainer, metric, task, objective and bundled model has a generated page."""

from __future__ import annotations

from faithbench.cli.reference.models import bundled_models
from faithbench.cli.reference.pages import page_name
from faithbench.cli.reference.site import reference_pages
from faithbench.data.tasks import task_names
from faithbench.explainers.registry import EXPLAINERS
from faithbench.metrics import METRICS
from faithbench.training.objectives import known_objectives


def test_every_page_is_made_once_and_is_in_its_index() -> None:
    made = list(reference_pages(examples=False))
    pages = dict(made)
    assert len(pages) == len(made)
    wanted = {
        "explainers": EXPLAINERS,
        "metrics": METRICS,
        "tasks": task_names(),
        "objectives": [one.name for one in known_objectives() if not one.package],
        "models": bundled_models(),
    }
    for kind, names in wanted.items():
        own = {path for path in pages if path.startswith(f"{kind}/")}
        assert own == {f"{kind}/index.md", *(f"{kind}/{page_name(name)}" for name in names)}
        assert all(f"]({page_name(name)})" in pages[f"{kind}/index.md"] for name in names)
    assert all(text.startswith("# ") for text in pages.values())
    assert "| **tested on** | bert, roberta, " in pages["explainers/lime.md"]
