"""The whole study: train what is missing, measure it, test the claims, and write the page."""

from __future__ import annotations

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import check_writable, replace_file
from faithbench.core.machine import cpu_name
from faithbench.core.types import Progress, quiet
from faithbench.models.architectures import ATTENTIVE
from faithbench.studies.sparse_attention.adversary import Adversary, adversaries
from faithbench.studies.sparse_attention.figures import write_figures
from faithbench.studies.sparse_attention.measure import measured_networks
from faithbench.studies.sparse_attention.networks import read_splits, trained_networks
from faithbench.studies.sparse_attention.page import Study, page
from faithbench.studies.sparse_attention.plan import StudyRequest, networks_of, study_tasks
from faithbench.studies.sparse_attention.record import StudyRecord
from faithbench.training.from_scratch import check_arch, settle_scratch

PAGE = "sparse-attention.md"


def study_sparse_attention(request: StudyRequest, progress: Progress = quiet) -> Study:
    """Make the study and its page in `request.out`; a killed call continues where it stopped."""
    tasks = study_tasks(request.tasks)
    for task in tasks:  # a bad name or width is refused before data are read
        network, *_ = networks_of(request, task)
        recipe = network.recipe(request.plan_of(task), request.vectors)
        check_arch(recipe)
        settle_scratch(recipe)
    if "," in str(request.out):  # an adversary's objective names a folder of it among settings
        raise FaithbenchError(f"--out {request.out} has a comma in it; choose another --out")
    check_writable(request.out, "--out")
    records: list[StudyRecord] = []
    diverged: list[Adversary] = []
    data = {}
    for task in tasks:  # all of them, before hours of training that the last would end
        progress(f"reading {task.name}", 0, 0)
        data[task.name] = read_splits(request, task)
    for task in tasks:
        splits = data[task.name]
        networks = trained_networks(request, splits, progress)
        records += measured_networks(request, networks, splits, progress)
        if request.plan_of(task).adversaries:
            diverged += adversaries(request, networks, splits, progress)
    study = Study(tuple(records), tuple(diverged), request.quick, command_of(request), cpu_name())
    progress("writing the page", 0, 0)
    figures = write_figures(study.records, request.out)
    replace_file(request.out / PAGE, page(study, figures).encode())
    return study


def command_of(request: StudyRequest) -> str:
    """Return the command that makes this study, without any folder of this machine."""
    parts = [f"--task {','.join(request.tasks)}", f"--seeds {request.seeds}"]
    parts += [f"--arch {','.join(request.archs)}"] if request.archs != ATTENTIVE else []
    parts += ["--data DATA"] if request.folder else []
    parts += [f"--vectors {request.vectors}"] if request.vectors != "minilm" else []
    parts += ["--quick"] if request.quick else []
    return f"faithbench study sparse-attention {' '.join(parts)}"
