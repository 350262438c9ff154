"""The process that runs an untrusted explainer: `python -m faithbench.submissions.sandbox.worker`.

It confines itself, loads the model, and only then imports the explainer. It sends scores as JSON
lines, and `client` accepts nothing else from it. Modules that start threads (numpy, torch) are
loaded after `confine`, inside the functions that need them: older threads would stay free.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.schema import Facts
from faithbench.submissions.sandbox.confine import Limits, confine
from faithbench.submissions.sandbox.messages import Failed, Ready, Request, Scores

if TYPE_CHECKING:
    from faithbench.core.types import Encoding
    from faithbench.explainers.selection import Selected
    from faithbench.models.model import Model


BATCH = 16
"""Examples that are explained together, as in a run."""


def main(path: str, descriptor: int) -> None:
    """Do what the request in a file asks for, and send the answers to a descriptor."""
    request = Request.model_validate_json(Path(path).read_bytes(), strict=True)
    limits = Limits(request.seconds, request.memory_mb, file_mb=request.file_mb)
    _send(descriptor, confine(limits, map(Path, request.readable), Path(path).parent))
    try:
        model, encodings = _load(request)
        _send(descriptor, Ready(ready=True))
        for scores in _explain(request, model, encodings):
            _send(descriptor, scores)
    except BaseException as error:  # sys.exit() in untrusted code is a failure, too
        _send(descriptor, _failure(error))
        os._exit(1)
    # At once: threads and exit handlers of the untrusted code must not run on.
    os._exit(0)


def _load(request: Request) -> tuple[Model, list[Encoding]]:
    from faithbench.core.types import Example
    from faithbench.models.encoding import encode
    from faithbench.models.model import load_model

    model = load_model(
        request.model,
        labels=request.labels,
        kind=request.kind,
        revision=request.revision,
        device="cpu",
    )
    if model.sha256 != request.model_sha256:
        raise FaithbenchError(f"model {request.model} changed while it was read; run it again")
    return model, [
        # The label is not known here, and no explainer reads it.
        encode(model, Example(question.id, question.text, 0, question.text_b), request.evidence)
        for question in request.examples
    ]


def _explain(request: Request, model: Model, encodings: list[Encoding]) -> Iterator[Scores]:
    """Import the explainer, and explain the examples, those of similar length together."""
    from faithbench.explainers.protocol import check_inputs, is_stochastic
    from faithbench.models.encoding import collate
    from faithbench.models.session import Session
    from faithbench.run.attribute import attribute, seed_of

    selected = _select(request)
    check_inputs(selected.explainer, model, encodings)
    session = Session(model)
    seeds = request.seeds if is_stochastic(selected.explainer) else request.seeds[:1]
    targets = {question.id: question.target for question in request.examples}
    by_length = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    for start in range(0, len(by_length), BATCH):
        together = by_length[start : start + BATCH]
        ids = [encoding.example.id for encoding in together]
        by_seed = []
        for seed in seeds:
            seeds_of_examples = [seed_of(seed, name) for name in ids]
            predicted = [targets[name] for name in ids]
            batch = collate(model, together, predicted, seeds_of_examples, seed)
            attributions = attribute(session, selected, batch)
            by_seed.append([tuple(attribution.scores.tolist()) for attribution in attributions])
        session.clear()
        for name, *scores in zip(ids, *by_seed, strict=True):
            # Not validated here: the client does it, since it trusts nothing that a worker sends.
            yield Scores.model_construct(id=name, scores=tuple(scores))


def _select(request: Request) -> Selected:
    """Import the explainer's file, and make the explainer with its settings."""
    from faithbench.explainers.registry import plugins_of_file
    from faithbench.explainers.selection import Selected, configure, explainer_class

    plugins = {plugin.name: plugin for plugin in plugins_of_file(Path(request.file))}
    if request.explainer not in plugins:
        raise unknown("explainer", request.explainer, plugins)
    cls = explainer_class(plugins[request.explainer])
    settings = {key: str(value) for key, value in request.settings.items()}
    return Selected(request.explainer, configure(request.explainer, cls, settings), "submission")


def _failure(error: BaseException) -> Failed:
    """Describe an error in a sentence; those of faithbench are sentences already."""
    ours = isinstance(error, FaithbenchError)
    message = str(error) if ours else f"{type(error).__name__}: {error}"
    # What an explainer's own code raises is wrapped in a sentence that names the example.
    if isinstance(error.__cause__ or error, PermissionError):
        message += "; an explainer may not start processes, use the network, or touch other files"
    return Failed(error=message[:2000])


def _send(descriptor: int, message: Facts) -> None:
    data = message.model_dump_json().encode() + b"\n"
    while data:  # a pipe may take less than all at once
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
