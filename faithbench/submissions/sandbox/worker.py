"""The process that runs a stranger's explainer: `python -m faithbench.submissions.worker`.

It confines itself, loads the model, and only then imports the explainer. Scores go out as JSON
lines; whoever reads them believes nothing else.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.submissions.sandbox.confine import Limits, confine
from faithbench.submissions.sandbox.messages import Confined, Failed, Ready, Request

if TYPE_CHECKING:
    from faithbench.core.types import Encoding
    from faithbench.models.model import Model


BATCH = 16
Answer = dict[str, Any]


def main(path: str, descriptor: int) -> None:
    """Do what the order in a file says, and send the answers to a descriptor."""
    order = Request.model_validate_json(Path(path).read_bytes(), strict=True)
    limits = Limits(order.seconds, order.memory_mb, file_mb=order.file_mb)
    held = confine(limits, [Path(one) for one in order.readable], Path(path).parent)
    _send(descriptor, Confined(holds=held.holds, missing=held.missing).model_dump())
    try:
        model, encodings = _load(order)
        _send(descriptor, Ready(ready=True).model_dump())
        for given in _explained(order, model, encodings):
            _send(descriptor, given)
    except BaseException as error:  # an exit, too, is an answer
        _send(descriptor, _failure(error))
        os._exit(1)
    # Whatever the stranger's code left behind, in threads or at exit, has no say.
    os._exit(0)


def _load(order: Request) -> tuple[Model, list[Encoding]]:
    from faithbench.core.types import Example
    from faithbench.models.encoding import encode
    from faithbench.models.model import load_model

    model = load_model(
        order.model,
        labels=order.labels,
        kind=order.kind,
        revision=order.revision,
        device="cpu",
    )
    if model.weights_sha256 != order.weights_sha256:
        raise FaithbenchError(f"model {order.model} changed while it was read; run it again")
    return model, [
        encode(model, Example(one.id, one.text, 0, one.text_b), order.evidence)
        for one in order.examples
    ]


def _explained(order: Request, model: Model, encodings: list[Encoding]) -> Iterator[Answer]:
    """Import the explainer, and explain the examples, those of like length together."""
    from faithbench.explainers.protocol import check_inputs, is_stochastic
    from faithbench.models.encoding import collate
    from faithbench.models.session import Session
    from faithbench.run.attribute import attribute, seed_of

    chosen = _chosen(order)
    check_inputs(chosen.explainer, model, encodings)
    session = Session(model)
    seeds = order.seeds if is_stochastic(chosen.explainer) else order.seeds[:1]
    targets = {one.id: one.target for one in order.examples}
    by_length = sorted(encodings, key=lambda e: (len(e.ids), e.example.id))
    for start in range(0, len(by_length), BATCH):
        part = by_length[start : start + BATCH]
        ids = [encoding.example.id for encoding in part]
        found = []
        for seed in seeds:
            own = [seed_of(seed, name) for name in ids]
            batch = collate(model, part, [targets[name] for name in ids], own)
            found.append([one.scores.tolist() for one in attribute(session, chosen, batch)])
        session.clear()
        for name, *scores in zip(ids, *found, strict=True):
            yield {"id": name, "scores": scores}


def _chosen(order: Request) -> Any:
    from faithbench.explainers.registry import plugins_of_file
    from faithbench.explainers.selection import Selected, configure, explainer_class

    plugins = {plugin.name: plugin for plugin in plugins_of_file(Path(order.file))}
    if order.explainer not in plugins:
        raise unknown("explainer", order.explainer, plugins)
    kind = explainer_class(plugins[order.explainer])
    settings = {key: str(value) for key, value in order.settings.items()}
    return Selected(order.explainer, configure(order.explainer, kind, settings), "submission")


def _failure(error: BaseException) -> Answer:
    """Say what went wrong: our own errors are sentences already."""
    said = str(error) if isinstance(error, FaithbenchError) else f"{type(error).__name__}: {error}"
    # What an explainer's own code raises is wrapped in a sentence that names the example.
    if isinstance(error.__cause__ or error, PermissionError):
        said += "; an explainer may not start processes, use the network or write elsewhere"
    return Failed(error=said[:2000]).model_dump()


def _send(descriptor: int, answer: Answer) -> None:
    data = json.dumps(answer).encode() + b"\n"
    while data:
        data = data[os.write(descriptor, data) :]


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
