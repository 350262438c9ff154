"""Sentence embeddings: texts that mean alike lie close together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from faithbench.core.errors import FaithbenchError
from faithbench.core.files import parse_json
from faithbench.core.types import Progress
from faithbench.models.files.weights import BASE_NAME, base_folder

TOKENS = 4096
"""Padded tokens per pass."""


def encoder_sha256(encoder: str | None = None) -> str:
    """Return the checksum of an encoder's weights, by which embeddings may be kept."""
    return base_folder(encoder or BASE_NAME, "--encoder")[1]


def embed(
    texts: Sequence[str],
    encoder: str | None = None,
    device: str = "auto",
    progress: Progress | None = None,
) -> NDArray[np.float32]:
    """Embed texts: the mean of the last states of all tokens, special ones too, at length 1.

    That is how all-MiniLM-L6-v2, the default, was trained (Reimers & Gurevych 2019);
    `encoder` is another one, by folder or hub name. Texts beyond its longest input are cut.
    Texts of similar length share passes; the result has one row per text, in the order given.
    """
    import torch

    network, tokenizer, longest = _load(encoder or BASE_NAME, device)
    rows = _tokenise(tokenizer, texts, longest) if texts else []
    order = sorted(range(len(rows)), key=lambda i: (-len(rows[i]), i))
    vectors = np.zeros((len(rows), int(network.config.hidden_size)), dtype=np.float32)
    done = 0
    while done < len(order):
        size = max(1, TOKENS // max(1, len(rows[order[done]])))
        indices = order[done : done + size]
        inputs = tokenizer.pad({"input_ids": [rows[i] for i in indices]}, return_tensors="pt")
        ids, attention = (inputs[k].to(network.device) for k in ("input_ids", "attention_mask"))
        with torch.inference_mode():
            states = network(input_ids=ids, attention_mask=attention).last_hidden_state
        real = attention[:, :, None].to(states.dtype)
        mean = (states * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        vectors[indices] = torch.nn.functional.normalize(mean, dim=-1).cpu().numpy()
        done += len(indices)
        if progress is not None:
            progress("embedding", done, len(order))
    return vectors


def _tokenise(tokenizer: Any, texts: Sequence[str], longest: int) -> list[list[int]]:
    """Return the token ids of each text, special ones around it, cut at the longest input."""
    from faithbench.models.encoding import ids_of_text

    read = tokenizer(
        list(texts),
        truncation=True,
        max_length=longest,
        split_special_tokens=True,
        return_special_tokens_mask=True,
    )
    pairs = zip(read["input_ids"], read["special_tokens_mask"], strict=True)
    return [ids_of_text(tokenizer, ids, added).tolist() for ids, added in pairs]


def _load(name: str, device: str) -> tuple[Any, Any, int]:
    """Return an encoder, its tokenizer and the number of tokens it reads at most."""
    import torch

    from faithbench.models.devices import choose_device
    from faithbench.models.model import quieten

    folder, _ = base_folder(name, "--encoder")
    quieten()
    from transformers import AutoModel, AutoTokenizer

    network: Any = AutoModel.from_pretrained(folder, dtype=torch.float32, trust_remote_code=False)
    tokenizer: Any = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    network = network.to(choose_device(device)).eval().requires_grad_(False)
    return network, tokenizer, _longest(folder, network.config, tokenizer)


def _longest(folder: Path, config: Any, tokenizer: Any) -> int:
    """Return the longest input: that of the encoder's own file, else what fits the network."""
    from faithbench.models.model import longest_input

    longest = longest_input(config, tokenizer)
    file = folder / "sentence_bert_config.json"
    if not file.is_file():
        return longest
    try:
        stored = parse_json(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise FaithbenchError(f"{file} is not JSON ({error}); restore the encoder") from error
    max_seq_length = stored.get("max_seq_length") if isinstance(stored, dict) else None
    return min(longest, max_seq_length) if isinstance(max_seq_length, int) else longest
