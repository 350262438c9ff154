"""What `faithbench run` does once its options are parsed."""

from __future__ import annotations

from rich.console import Console

from faithbench.display import caption, progress_on, results_tables
from faithbench.jobs import Request, make_job


def run_command(request: Request) -> None:
    """Run explainers on a task and print the table, three heat maps and the record paths."""
    console = Console()
    with console.status("loading data and model"):
        job = make_job(request)
        from faithbench.run import run
    with progress_on(console) as progress:
        outcomes = run(job, progress)
    for table in results_tables([(o.chosen.label, o.record) for o in outcomes]):
        console.print(table)
    console.print(caption(outcomes[0].record), style="dim", highlight=False)
    from faithbench.comparison import comparison_lines, show_examples

    for line in comparison_lines(outcomes):
        console.print(line, highlight=False, markup=False)
    show_examples(console, job.model, job.data, outcomes[0])
    for outcome in outcomes:
        console.print(f"record: {outcome.path}", highlight=False, markup=False, soft_wrap=True)
