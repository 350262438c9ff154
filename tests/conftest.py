"""Small models shared by the whole session: nothing here needs a network or a GPU."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")
# Tiny models gain nothing from threads, and lose much on a busy machine.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import pytest
import torch

GOLDEN = Path(__file__).parent / "golden"
WORDS = ["good", "bad", "film", "the", "a", "plot", "is", "not", "very", "great", "dull", "and"]
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


@pytest.fixture(scope="session")
def golden() -> dict[str, np.ndarray]:
    """Every copied reference array, by `<input>_nl<classes>/<key>`."""
    found = {}
    for name in ("bert_cls.npz", "white_box.npz"):
        with np.load(GOLDEN / name) as file:
            found |= {key: file[key] for key in file.files}
    return found


@pytest.fixture(scope="session")
def golden_masks() -> dict[str, list[list[int]]]:
    masks: dict[str, list[list[int]]] = json.loads((GOLDEN / "head_masks.json").read_text())
    return masks


@pytest.fixture(scope="session")
def tokenizer():
    """A tokenizer with word pieces: `word` is whole, `wordly` is word + ##ly."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    entries = [*SPECIAL, *WORDS, *(f"##{piece}" for piece in ("ly", "s", "ing")), ".", ",", "'"]
    entries += [f"w{i}" for i in range(60)]
    inner = Tokenizer(
        models.WordPiece({word: i for i, word in enumerate(entries)}, unk_token="[UNK]")
    )
    inner.normalizer = normalizers.BertNormalizer()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]",
        pair="[CLS] $A [SEP] $B:1 [SEP]:1",
        special_tokens=[("[CLS]", 2), ("[SEP]", 3)],
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner,
        pad_token="[PAD]",
        unk_token="[UNK]",
        cls_token="[CLS]",
        sep_token="[SEP]",
        mask_token="[MASK]",
        model_max_length=64,
    )


def _config(architecture: str, classes: int, vocabulary: int):
    import transformers

    sizes = {
        "vocab_size": vocabulary,
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 70,
        "pad_token_id": 0,
        "num_labels": classes,
    }
    kinds = {
        "bert": transformers.BertConfig,
        "roberta": transformers.RobertaConfig,
        "distilbert": transformers.DistilBertConfig,
        "electra": transformers.ElectraConfig,
        "albert": transformers.AlbertConfig,
        "gpt2": transformers.GPT2Config,
    }
    if architecture == "distilbert":
        sizes["hidden_dim"] = sizes.pop("intermediate_size")
        sizes |= {"dim": sizes.pop("hidden_size"), "n_layers": sizes.pop("num_hidden_layers")}
        sizes["n_heads"] = sizes.pop("num_attention_heads")
    if architecture in ("electra", "albert"):
        sizes["embedding_size"] = 16
    if architecture == "gpt2":
        sizes = {
            "vocab_size": vocabulary,
            "n_embd": 32,
            "n_layer": 2,
            "n_head": 4,
            "n_positions": 70,
            "pad_token_id": 0,
            "num_labels": classes,
        }
    return kinds[architecture](**sizes)


TinyModel = Callable[..., "object"]


@pytest.fixture(scope="session")
def tiny_model(tokenizer):
    """Build (once per kind) a random classifier whose biases and norms are not trivial."""
    from faithbench.models import build_model

    made = {}

    def build(architecture: str = "bert", classes: int = 2, dtype: torch.dtype = torch.float64):
        from transformers import AutoModelForSequenceClassification

        key = (architecture, classes, dtype)
        if key not in made:
            config = _config(architecture, classes, len(tokenizer))
            torch.manual_seed(0)
            network = AutoModelForSequenceClassification.from_config(config)
            with torch.no_grad():
                for parameter in network.parameters():
                    parameter.add_(torch.randn_like(parameter) * 0.1)
            made[key] = build_model(
                f"tiny-{architecture}",
                network.to(dtype),
                tokenizer,
                labels=tuple(f"class {i}" for i in range(classes)),
                weights_sha256=f"{architecture}-{classes}",
            )
        return made[key]

    return build


@pytest.fixture(scope="session")
def batch_of():
    """Collate texts for a model: `batch_of(model, ["good film", ...], targets=[...])`."""
    from faithbench.models import collate, encode
    from faithbench.types import Example

    def build(model, texts: list[str], targets: list[int] | None = None, evidence: str = "text"):
        encodings = []
        for i, text in enumerate(texts):
            first, _, second = text.partition(" || ")
            encodings.append(encode(model, Example(f"e{i}", first, 0, second or None), evidence))
        return collate(model, encodings, targets or [0] * len(texts), list(range(len(texts))))

    return build
