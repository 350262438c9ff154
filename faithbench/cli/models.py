"""The commands that make models ready, `train` and `heads`: parse, call one function."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from faithbench.cli.options import DataFolder, Device, ModelName, Source, TaskName


def train(
    task: TaskName,
    out: Annotated[
        Path | None, typer.Option(help="New folder for the model (default: models/<task>).")
    ] = None,
    base: Annotated[
        str | None, typer.Option(help="What to start from: a folder or a name on the hub.")
    ] = None,
    lora: Annotated[
        bool, typer.Option("--lora/--full", help="Train a small adapter, or all weights.")
    ] = True,
    seed: Annotated[int, typer.Option()] = 0,
    data: DataFolder = None,
    source: Source = "auto",
    device: Device = "auto",
    epochs: Annotated[int, typer.Option(min=1)] = 4,
    patience: Annotated[int, typer.Option(min=1, help="Epochs without a better one.")] = 2,
    learning_rate: Annotated[float | None, typer.Option(help="1e-3; --full: 5e-5.")] = None,
    batch_size: Annotated[int, typer.Option(min=1)] = 32,
    rank: Annotated[int, typer.Option(min=1, help="LoRA rank.")] = 16,
    dropout: Annotated[float, typer.Option(min=0, max=1, help="Of the adapter.")] = 0.1,
    encoder_dropout: Annotated[float, typer.Option(min=0, max=1, help="0 is faster.")] = 0.1,
    max_tokens: Annotated[int | None, typer.Option(min=8, help="Cut training texts.")] = None,
    excerpts: Annotated[
        str, typer.Option(help="Learn from rationales alone too, with so many sentences around.")
    ] = "",
    excerpts_alone: Annotated[
        bool, typer.Option("--excerpts-alone", help="Learn from excerpts, not from documents.")
    ] = False,
    limit: Annotated[int | None, typer.Option(min=1, help="Use so many training rows.")] = None,
    dev_limit: Annotated[int | None, typer.Option(min=1, help="Rows to choose by.")] = None,
    test_limit: Annotated[int | None, typer.Option(min=1, help="Rows to judge on.")] = None,
    metric: Annotated[
        str | None, typer.Option(help="What dev chooses by (default: the task's usual one).")
    ] = None,
) -> None:
    """Fine-tune an encoder on a task; a killed training continues."""
    from faithbench.cli.train_command import train_command

    train_command(
        task=task, out=out, base=base, lora=lora, seed=seed, data=data, source=source,
        device=device, epochs=epochs, patience=patience, learning_rate=learning_rate,
        batch_size=batch_size, rank=rank, dropout=dropout, encoder_dropout=encoder_dropout,
        max_tokens=max_tokens, excerpts=excerpts,
        excerpts_alone=excerpts_alone, limits=(limit, dev_limit, test_limit),
        metric=metric,
    )  # fmt: skip


def heads(
    task: TaskName,
    model: ModelName = None,
    data: DataFolder = None,
    source: Source = "auto",
    sentences: Annotated[int, typer.Option(min=1, help="Training sentences to parse.")] = 1000,
    examples: Annotated[int, typer.Option(min=1, help="Dev examples to calibrate on.")] = 100,
    max_tokens: Annotated[int | None, typer.Option(min=8, help="Cut texts.")] = None,
    coarse: Annotated[
        bool, typer.Option("--coarse", help="Try every third threshold: for long texts.")
    ] = False,
    device: Device = "auto",
    out: Annotated[
        Path | None, typer.Option(help="File to write (default: where lrp-mask looks).")
    ] = None,
) -> None:
    """Find a model's syntactic and positional heads, and calibrate lrp-mask on dev."""
    from faithbench.cli.train_command import heads_command

    heads_command(
        task=task, model=model, data=data, source=source, sentences=sentences,
        examples=examples, max_tokens=max_tokens, coarse=coarse, device=device, out=out,
    )  # fmt: skip
