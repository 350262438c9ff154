"""Cells of FRESH: classifiers that were trained on the rationales of an explainer alone."""

from __future__ import annotations

from faithbench.core.files import digest_of, slug
from faithbench.studies.reproduction.measures.networks import Networks
from faithbench.studies.reproduction.recipe import Part
from faithbench.studies.reproduction.request import SEEDS
from faithbench.studies.reproduction.values import Missing, RecordRef, Value, of_seeds
from faithbench.training.fresh.extraction import Extraction
from faithbench.training.fresh.study import FreshRequest, fresh
from faithbench.training.recipe import Recipe

QUICK = 40
"""Texts of each split in a quick reproduction."""
TESTED = 400
"""Test texts that a classifier is scored on."""


def fresh_value(networks: Networks, part: Part) -> Value:
    """Return macro-F1 of the classifiers, one per seed; the support model is of the first seed."""
    assert part.model is not None and part.metric is not None and part.explainer is not None
    supports = networks.of(part.model)
    if isinstance(supports, Missing):
        return supports
    network = supports[0]
    spec = networks.request.recipe.models[part.model]
    selection = "topk" if part.metric.endswith("topk") else "contiguous"
    how = Extraction(part.ratio or 0.2, selection)  # type: ignore[arg-type]  # one of the two
    few = QUICK if networks.request.quick else None
    training = spec.train
    limits = (
        few or (training.limit if training else None),
        few or (training.dev_limit if training else None),
        few or TESTED,
    )
    root = networks.request.results / "fresh"
    recipe = Recipe(
        metric="macro_f1",
        epochs=1 if networks.request.quick else 3,
        dropout=0.0,
        encoder_dropout=0.0,
        batch_size=32,
        max_tokens=None if training is None else training.max_tokens,
    )
    name = f"fresh {part.model} {part.explainer} {selection} {how.ratio}"
    with networks.clock.piece(name):
        report = fresh(
            FreshRequest(
                task=network.task,
                explainer=part.explainer,
                how=how,
                out=root / slug(f"{part.model}-{selection}"),
                records=root / "records",
                recipe=recipe,
                models=(network.ref,),
                seeds=networks.request.seeds_of(part.seeds or SEEDS),
                controls=(),
                folder=networks.request.folder,
                limits=limits,
                device=networks.request.device,
                jobs=networks.request.jobs,
            ),
            networks.progress,
        )
    arm = report.arms[0]
    assert arm.record is not None  # of an explainer there is one
    ref = RecordRef(arm.record.relative_to(root).as_posix(), digest_of(list(arm.macro_f1)))
    return of_seeds(arm.macro_f1, part.scale or 1.0, [ref], n=len(arm.right))
