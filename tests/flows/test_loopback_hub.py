"""The hub, for real: its own clients, over the wire, from a small server on loopback."""

from __future__ import annotations

import io
import pickle
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from faithbench.core.errors import FaithbenchError
from faithbench.data.dataset import load_dataset
from faithbench.models.files.weights import base_folder
from faithbench.models.model import Model, load_model
from faithbench.testing.tiny import tiny_model
from tests.support.builders import REVISION, make_task
from tests.support.builders import complaint as data_complaint
from tests.support.commands import Call, complaint
from tests.support.hub import Hub, Repository, serve_hub
from tests.support.tasks import hub_files

EMPTY = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
"""The sha256 of nothing at all."""


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    monkeypatch.delenv("FAITHBENCH_DATA", raising=False)
    with serve_hub(tmp_path, monkeypatch) as served:
        yield served


@pytest.fixture(scope="module")
def safe(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The files of a small model, as `save_pretrained` writes them."""
    folder = tmp_path_factory.mktemp("model")
    model = tiny_model(dtype=torch.float32)
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def pickled(files: dict[str, bytes], weights: object = None) -> dict[str, bytes]:
    """Return a model's files with its weights, or other ones, in a pytorch_model.bin."""
    content = io.BytesIO()
    torch.save(weights or tiny_model(dtype=torch.float32).network.state_dict(), content)
    others = {name: content for name, content in files.items() if name != "model.safetensors"}
    return others | {"pytorch_model.bin": content.getvalue()}


def load(name: str, revision: str | None = None) -> Model:
    return load_model(name, labels=("no", "yes"), revision=revision, device="cpu")


def refusal(name: str, revision: str | None = None) -> str:
    with pytest.raises(FaithbenchError) as caught:
        load(name, revision)
    return str(caught.value)


def has_the_weights(model: Model) -> bool:
    wanted = tiny_model(dtype=torch.float32).network.state_dict()
    return all(
        torch.equal(tensor, wanted[key]) for key, tensor in model.network.state_dict().items()
    )


def test_a_model_with_safetensors(hub: Hub, safe: dict[str, bytes]) -> None:
    hub.repositories["models/owner/safe"] = Repository(safe)
    model = load("owner/safe")
    assert has_the_weights(model) and model.public_name == "owner/safe"
    assert len(hub.downloads("model.safetensors")) == 1
    again = load("owner/safe", "0123456789" * 4)
    assert again.weights_sha256 == model.weights_sha256
    assert len(hub.downloads("model.safetensors")) == 1, "it came from the cache"


def test_a_model_that_has_only_a_pickle(
    hub: Hub, safe: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DISABLE_SAFETENSORS_CONVERSION", "")
    other = dict(tiny_model(dtype=torch.float32).network.state_dict())
    other["classifier.bias"] = other["classifier.bias"] + 1
    hub.repositories["models/owner/safe"] = Repository(safe)
    hub.repositories["models/owner/old"] = Repository(pickled(safe))
    hub.repositories["models/owner/other"] = Repository(pickled(safe, other))
    asked = []
    load_ = torch.load
    monkeypatch.setattr(
        torch, "load", lambda *args, **kwargs: asked.append(kwargs) or load_(*args, **kwargs)
    )
    models = [load(f"owner/{name}") for name in ("safe", "old", "other")]
    assert [has_the_weights(model) for model in models] == [True, True, False]
    assert [kwargs["weights_only"] for kwargs in asked] == [True, True]
    digests = {model.weights_sha256 for model in models}
    assert len(digests) == 3 and EMPTY not in digests
    # transformers would have asked a service to convert the model, and told it so.
    assert not [ask for ask in hub.asked if "commits" in ask.path or "discussions" in ask.path]


class Hostile:
    """What a pickle of a stranger may hold: a call."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, tuple[str]]:
        return Path.touch, (self.file,)  # type: ignore[return-value]


def test_a_pickle_that_holds_more_than_tensors(
    hub: Hub, safe: dict[str, bytes], tmp_path: Path
) -> None:
    proof = tmp_path / "ran"
    assert pickle.loads(pickle.dumps(Hostile(proof))) is None and proof.exists()
    proof.unlink()
    hub.repositories["models/owner/bad"] = Repository(pickled(safe, Hostile(proof)))
    assert refusal("owner/bad") == (
        "cannot load model 'owner/bad' at main from the hub (its pytorch_model.bin holds more than "
        "tensors); ask its owner for safetensors, or choose another with --model"
    )
    assert not proof.exists()


def test_a_gated_model_and_one_that_is_not_there(hub: Hub, safe: dict[str, bytes]) -> None:
    hub.repositories["models/owner/gated"] = Repository(safe, gated=True)
    assert refusal("owner/gated") == (
        "cannot load model 'owner/gated' at main from the hub (access to it is restricted); ask "
        "for access on its page and run `hf auth login`, or choose another with --model"
    )
    assert refusal("owner/none") == (
        "cannot load model 'owner/none' at main from the hub (it is not there, or private); check "
        "the name, run `hf auth login`, or choose another with --model"
    )


def test_a_revision_that_does_not_exist(hub: Hub, safe: dict[str, bytes]) -> None:
    hub.repositories["models/owner/safe"] = Repository(safe)
    hub.repositories["datasets/owner/mini"] = Repository(hub_files(make_task()), REVISION)
    for revision, shown in (("v9", "v9"), ("f" * 40, "ffffffff")):
        assert refusal("owner/safe", revision) == (
            f"cannot load model 'owner/safe' at {shown} from the hub (it has no such revision); "
            "check the revision, or choose another with --model"
        )
    source = make_task().hub
    assert source is not None
    task = make_task(hub=source.model_dump() | {"revision": "f" * 40})
    assert data_complaint(task, source="hub") == (
        "cannot load owner/mini at ffffffff from the hub (it has no such revision); check the "
        "revision, or use another source: folder"
    )


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """A client of files in small pieces that waits 0.2 s for the next one, then asks at once."""
    from huggingface_hub import constants, file_download

    monkeypatch.setattr(constants, "DOWNLOAD_CHUNK_SIZE", 1000)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 0.2)
    monkeypatch.setattr(file_download, "time", types.SimpleNamespace(sleep=lambda seconds: None))


@pytest.mark.usefixtures("impatient")
def test_a_file_that_breaks_off_is_resumed(hub: Hub, safe: dict[str, bytes]) -> None:
    breaks = {"model.safetensors": [20_500, 30_000]}
    hub.repositories["models/owner/breaks"] = Repository(safe, breaks_at=breaks)
    assert has_the_weights(load("owner/breaks"))
    # From the last whole piece that had arrived.
    starts = [ask.start for ask in hub.downloads("model.safetensors")]
    assert starts[0] == 0 and starts[1:] == [20_000, 30_000]


@pytest.mark.usefixtures("impatient")
def test_a_slow_file_arrives(hub: Hub, safe: dict[str, bytes]) -> None:
    pauses = {"model.safetensors": [0.1], "config.json": [0.4, 0.1]}
    hub.repositories["models/owner/slow"] = Repository(safe, pauses=pauses)
    assert has_the_weights(load("owner/slow"))
    assert len(hub.downloads("/config.json")) == 2, "the first took longer than the client waits"


@pytest.mark.usefixtures("impatient")
def test_a_file_that_never_arrives_whole(hub: Hub, safe: dict[str, bytes]) -> None:
    breaks = {"model.safetensors": [20_500] * 9}
    hub.repositories["models/owner/cut"] = Repository(safe, breaks_at=breaks)
    assert refusal("owner/cut") == (
        "cannot load model 'owner/cut' at main from the hub (the hub broke off or stopped "
        "answering); try again, or choose another with --model"
    )
    # The client resumes within a call; the next call begins again.
    assert [ask.start for ask in hub.downloads("model.safetensors")] == [0] + [20_000] * 5
    breaks["model.safetensors"].clear()
    hub.asked.clear()
    assert has_the_weights(load("owner/cut"))
    assert [ask.start for ask in hub.downloads("model.safetensors")] == [0]


def test_a_dataset(hub: Hub) -> None:
    hub.repositories["datasets/owner/mini"] = Repository(hub_files(make_task()), REVISION)
    found = load_dataset(make_task(), source="hub")
    assert (found.source, found.checked, len(found.examples)) == ("hub", True, 11)
    assert found.examples[0].text == "A good film 0."
    assert found.sha256 == "0c5ee804f4ebfccf28a77c33906a51ae79768dde6b2421d5747e0bccf7ca6696"


def test_a_dataset_that_is_gated_or_not_there(hub: Hub) -> None:
    files = hub_files(make_task())
    hub.repositories["datasets/owner/mini"] = Repository(files, REVISION, gated=True)
    assert data_complaint(make_task(), source="hub") == (
        "cannot load owner/mini at 01234567 from the hub (access to it is restricted); ask for "
        "access on its page and run `hf auth login`, or use another source: folder"
    )
    hub.repositories.clear()
    assert data_complaint(make_task(), source="hub") == (
        "cannot load owner/mini at 01234567 from the hub (it is not there, or private); check the "
        "name, run `hf auth login`, or use another source: folder"
    )


def test_another_revision_that_is_here_is_not_taken_for_it(hub: Hub) -> None:
    """`datasets` takes whatever it has prepared, if the hub refuses."""
    files = hub_files(make_task())
    hub.repositories["datasets/owner/mini"] = Repository(files, REVISION)
    assert len(load_dataset(make_task(), source="hub").examples) == 11
    other = "f" * 40
    hub.repositories["datasets/owner/mini"] = Repository(files, other, gated=True)
    source = make_task().hub
    assert source is not None
    task = make_task(hub=source.model_dump() | {"revision": other})
    assert data_complaint(task, source="hub") == (
        "cannot load owner/mini at ffffffff from the hub, which refused; another revision is in "
        "the local cache (01234567), and is not what was asked for; try again, or run `hf auth "
        "login`"
    )


def test_a_base_to_train(hub: Hub, safe: dict[str, bytes]) -> None:
    hub.repositories["models/owner/safe"] = Repository(safe)
    hub.repositories["models/owner/old"] = Repository(pickled(safe))
    hub.repositories["models/owner/gated"] = Repository(safe, gated=True)
    folders = [base_folder(f"owner/{name}") for name in ("safe", "old")]
    assert folders[0][1] != folders[1][1]
    assert [(folder / "model.safetensors").is_file() for folder, _ in folders] == [True, False]
    with pytest.raises(FaithbenchError) as caught:
        base_folder("owner/gated")
    assert str(caught.value) == (
        "cannot load base 'owner/gated' at main from the hub (access to it is restricted); ask for "
        "access on its page and run `hf auth login`, or choose another with --base"
    )


def test_the_command_says_one_line(hub: Hub, safe: dict[str, bytes], call: Call) -> None:
    hub.repositories["models/owner/gated"] = Repository(safe, gated=True)
    said = call(
        "run", "--task", "sst2", "--source", "bundled", "--explainer", "random", "--limit", "2",
        "--model", "owner/gated",
    )  # fmt: skip
    assert complaint(said).startswith("cannot load model 'owner/gated' at main from the hub (acc")
