"""From a task file to examples; words, sentences and rationales of a text.

- `tasks`: `load_task` and `task_names`; `task_schema`: the tables of a task file
- `dataset`: `load_dataset`, out of one of `sources` (a data folder, the hub, the package)
- `jsonl` and `examples`: rows of files, and examples made of them; `hub`: can it be reached
- `words`, `sentences` and `rationales`: spans of a text, the same for every tokenizer

    task = load_task("sst2")
    data = load_dataset(task, limit=50)
    data.examples[0].text, task.labels[data.examples[0].label]
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from faithbench.data.dataset import Dataset, load_dataset
    from faithbench.data.tasks import Task, load_task, task_names

__all__ = ["Dataset", "Task", "load_dataset", "load_task", "task_names"]


def __getattr__(name: str) -> Any:
    # Their schemas take a tenth of a second to build, which `faithbench --help` must not wait for.
    if name in ("Dataset", "load_dataset"):
        from faithbench.data import dataset

        return getattr(dataset, name)
    if name in ("Task", "load_task", "task_names"):
        from faithbench.data import tasks

        return getattr(tasks, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
