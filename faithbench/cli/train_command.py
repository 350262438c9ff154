"""What `faithbench train` does once its options are parsed."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console
from rich.table import Table

from faithbench.cli.display import progress_on
from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable
from faithbench.data.dataset import load_dataset
from faithbench.data.tasks import load_task
from faithbench.run.request import model_for


def train_command(
    *,
    task: str,
    out: Path | None,
    base: str | None,
    lora: bool,
    seed: int,
    data: Path | None,
    source: str,
    device: str,
    epochs: int,
    patience: int,
    learning_rate: float | None,
    batch_size: int,
    rank: int,
    dropout: float,
    encoder_dropout: float,
    max_tokens: int | None,
    excerpts: str,
    excerpts_alone: bool,
    limits: tuple[int | None, int | None, int | None],
    metric: str | None,
    objective: str,
) -> None:
    """Train a model and print what it reached."""
    console = Console()
    the_task = load_task(task)
    out = out or Path("models") / the_task.name
    check_writable(out, "--out")
    from faithbench.training.fit import fit
    from faithbench.training.recipe import Recipe, load_splits, usual_metric

    splits = load_splits(the_task, source=source, folder=data, limits=limits)
    recipe = Recipe(
        seed=seed,
        method="lora" if lora else "full",
        objective=objective,
        metric=metric or usual_metric(the_task),
        epochs=epochs,
        patience=patience,
        learning_rate=learning_rate or (1e-3 if lora else 5e-5),
        batch_size=batch_size,
        max_tokens=max_tokens,
        rank=rank,
        alpha=2 * rank,
        dropout=dropout,
        encoder_dropout=encoder_dropout,
        excerpts=_numbers(excerpts),
        excerpts_alone=excerpts_alone,
    )
    with progress_on(console) as progress:
        card = fit(splits, recipe, out, progress, base=base, device=device)
    scores = ", ".join(f"{name} {value:.4f}" for name, value in card["test"].items())
    best = f"{recipe.metric} {max(card['dev_by_epoch']):.4f}"
    console.print(
        f"test: {scores}; dev: {best}; use it with --model {out}", highlight=False, soft_wrap=True
    )


def _numbers(text: str) -> tuple[int, ...]:
    """Read a list of numbers with commas."""
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdecimal() for part in parts):
        raise FaithbenchError(
            f"--excerpts {text!r} should be numbers of sentences with commas, such as 0,2"
        )
    return tuple(int(part) for part in parts)


def heads_command(
    *,
    task: str,
    model: str | None,
    data: Path | None,
    source: str,
    sentences: int,
    examples: int,
    max_tokens: int | None,
    coarse: bool,
    device: str,
    out: Path | None,
) -> None:
    """Measure and calibrate a model's heads, and store what was found."""
    console = Console()
    the_task = load_task(task)
    if out is not None:
        check_writable(out.parent, "--out")
    parsed = load_dataset(the_task, source=source, split="train", folder=data, limit=sentences)
    dev = load_dataset(the_task, source=source, split="dev", folder=data, limit=examples)
    from faithbench.explainers.passes.heads import (
        HeadStatistics,
        cached_heads,
        count_heads,
        masks_at,
        write_heads,
    )
    from faithbench.models.encoding import shortened
    from faithbench.models.model import load_model
    from faithbench.training.head_calibration import PAPER, calibrate
    from faithbench.training.head_statistics import PARSER, measure, spacy_parse

    name, revision = model_for(the_task, parsed, model)
    loaded = load_model(
        name, labels=the_task.labels, kind=the_task.kind, revision=revision, device=device
    )
    loaded = shortened(loaded, max_tokens)
    target = out or cached_heads(loaded)
    check_writable(target.parent, "--out")
    with progress_on(console) as progress:
        relations, positions = measure(loaded, parsed.examples, spacy_parse, progress)
        facts = HeadStatistics(
            task=the_task.name,
            model=loaded.public_name,
            weights_sha256=loaded.weights_sha256,
            parser=f"{PARSER} {installed_version(PARSER)}",
            split=parsed.split,
            sentences=len(parsed.examples),
            data_sha256=parsed.sha256,
            relations=relations,
            positions=positions,
            thresholds={"paper": PAPER},
        )
        facts = calibrate(loaded, facts, dev, progress, step=3 if coarse else 1)
    write_heads(facts, target)
    table = Table("thresholds", "xi syntactic", "xi positional", "heads", "dev AOPC")
    grid = facts.calibration.grid if facts.calibration is not None else ()
    trials = {(t.xi_syntactic, t.xi_positional): t.aopc for t in grid}
    for kind, pair in facts.thresholds.items():
        score = trials.get(pair)
        table.add_row(
            kind,
            *(f"{xi:g}" for xi in pair),
            str(count_heads(masks_at(facts, *pair))),
            "-" if score is None else f"{score:.4f}",
        )
    console.print(table)
    console.print(f"written: {target}", highlight=False, soft_wrap=True)


def installed_version(module: str) -> str:
    """Return the version of the package that a module comes from."""
    from importlib.metadata import version

    return version(module.replace("_", "-"))
