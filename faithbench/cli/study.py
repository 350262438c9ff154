"""`faithbench study`: a paper's question, asked of models that are trained for it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table
from rich.text import Text

from faithbench.cli.help.command import MODEL, OUTPUT, WHAT, Application
from faithbench.cli.options import Commands, DataFolder, Device, Jobs, Source

if TYPE_CHECKING:
    from faithbench.studies.sparse_attention.claims import Claim

study_app = Application(
    cls=Commands,
    help="Ask a paper's question of models that are trained for it.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@study_app.callback()
def _studies() -> None:
    """Keep the study's name a word of its own: Typer drops it where there is only one."""


@study_app.command("sparse-attention")
def sparse_attention(
    task: Annotated[
        str,
        typer.Option(
            "--task", "-t", metavar="TASKS", help="Tasks with commas.", rich_help_panel=WHAT
        ),
    ] = "sst2,news20",
    seeds: Annotated[
        int,
        typer.Option(
            min=1,
            metavar="N",
            help="Networks of each kind (imdb: always one).",
            rich_help_panel=WHAT,
        ),
    ] = 3,
    arch: Annotated[
        str,
        typer.Option(metavar="NAMES", help="bilstm, transformer, or both.", rich_help_panel=MODEL),
    ] = "bilstm,transformer",
    vectors: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="Word vectors: minilm, glove, spacy or random.",
            rich_help_panel=MODEL,
        ),
    ] = "minilm",
    quick: Annotated[
        bool,
        typer.Option(
            "--quick",
            help="One epoch, few texts, one seed: only to see it work.",
            rich_help_panel=WHAT,
        ),
    ] = False,
    data: DataFolder = None,
    source: Source = "auto",
    device: Device = "auto",
    jobs: Jobs = None,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FOLDER",
            help="Networks, records and page (default: studies/sparse-attention).",
            rich_help_panel=OUTPUT,
        ),
    ] = None,
) -> None:
    """Is sparse attention more interpretable?

    Meister et al. 2021: trains BiLSTMs and small Transformers with attention from softmax to very
    sparse, measures how attention agrees with the influence of words and of inner representations,
    and writes a page with the paper's tables beside ours and a verdict on each of its claims. What
    is finished is kept; a stopped command continues.
    """
    from faithbench.cli.display import progress_on

    console = Console()
    with progress_on(console, "loading") as progress:
        from faithbench.run.backends import default_jobs
        from faithbench.studies.sparse_attention.plan import StudyRequest
        from faithbench.studies.sparse_attention.study import PAGE, study_sparse_attention

        folder = "sparse-attention-quick" if quick else "sparse-attention"
        request = StudyRequest(
            tasks=_names(task),
            out=out or Path("studies") / folder,
            seeds=seeds,
            archs=_names(arch),
            vectors=vectors,
            quick=quick,
            folder=data,
            source=source,
            jobs=jobs or default_jobs(device) or 1,
            device=device,
        )
        study = study_sparse_attention(request, progress)
    console.print(_verdicts(study.claims), highlight=False)
    if quick:
        console.print("a quick study proves nothing; leave out --quick for one that does")
    console.print(f"page: {request.out / PAGE}", highlight=False, soft_wrap=True)


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _verdicts(claims: tuple[Claim, ...]) -> Table:
    table = Table(box=SIMPLE_HEAD, padding=(0, 1, 0, 0), show_edge=False)
    table.add_column("claim", overflow="fold", max_width=44)
    table.add_column("verdict", no_wrap=True)
    table.add_column("trials", overflow="fold", max_width=18)
    for claim in claims:
        style = {"holds": "green", "does not hold": "red"}.get(claim.verdict, "")
        text = f"{claim.number}: {claim.sentence}"
        table.add_row(Text(text), Text(claim.verdict, style=style), Text(claim.count))
    return table
