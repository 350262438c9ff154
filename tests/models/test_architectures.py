"""Our own networks among transformers' Auto classes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch

from faithbench.core.types import Example
from faithbench.models.architectures import ARCHITECTURES, register_architectures
from faithbench.models.encoding import encode
from faithbench.models.engine import Engine
from faithbench.models.model import load_model
from faithbench.testing import tiny_model


def test_every_network_of_the_folder_is_registered() -> None:
    import faithbench.models.architectures as room

    files = Path(room.__path__[0]).glob("*.py")
    networks = re.findall(r"class (\w+)ForSequence", "".join(file.read_text() for file in files))
    assert {name.lower() for name in networks} == set(ARCHITECTURES)
    register_architectures()
    register_architectures()  # a second time changes nothing
    from transformers import AutoConfig

    for name in ARCHITECTURES:
        assert AutoConfig.for_model(name).model_type == name


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_folder_is_a_model_like_any_other(name: str, tmp_path: Path) -> None:
    made = tiny_model(name, 2, torch.float32)
    made.network.save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    read = load_model(str(tmp_path), labels=made.labels, kind="classification")
    encoding = encode(read, Example("a", "not a very good film", 1))
    row = (encoding.ids, encoding.types)
    expected = Engine(made).log_probabilities([row])
    # Weights at another address take another path through float32 kernels on some CPUs.
    assert Engine(read).log_probabilities([row]) == pytest.approx(expected, abs=1e-6)
    assert len(read.weights_sha256) == 64 and read.max_tokens == 64
