"""What `faithbench train` does once its options are parsed."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from faithbench.display import progress_on
from faithbench.errors import FaithbenchError
from faithbench.files import check_writable
from faithbench.tasks import Task, load_task

# What each task's own papers report; accuracy elsewhere.
_METRICS = {"semeval": "macro_f1", "cola": "matthews"}


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
) -> None:
    """Train a model and print what it reached."""
    console = Console()
    the_task = load_task(task)
    out = out or Path("models") / the_task.name
    check_writable(out, "--out")
    from faithbench.training.fit import fit
    from faithbench.training.recipe import Recipe
    from faithbench.training.splits import load_splits

    splits = load_splits(the_task, source=source, folder=data, limits=limits)
    recipe = Recipe(
        seed=seed,
        method="lora" if lora else "full",
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


def usual_metric(task: Task) -> str:
    """Return the score a task is usually reported by."""
    return "f1" if task.kind == "qa" else _METRICS.get(task.name, "accuracy")
