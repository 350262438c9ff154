"""Tiny random models of each supported architecture, for tests of explainers and plugins."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import torch

from faithbench.core.errors import unknown
from faithbench.models.architectures import register_architectures
from faithbench.models.model import Model, build_model

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


ARCHITECTURES = ("bert", "roberta", "distilbert", "electra", "albert", "gpt2")
WITHOUT_BLOCKS = ("cnn", "bilstm", "transformer")
"""Architectures that only classify, and without square attention: many explainers refuse them."""

PARTLY_SERVED = ("xlnet", "t5", "bart", "longformer", "fnet")
"""Architectures that only classify, and whose attention no explainer reads: many refuse them."""

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = ("good", "bad", "film", "the", "a", "plot", "is", "not", "very", "great", "dull", "and")
PIECES = ("##ly", "##s", "##ing", ".", ",", "'")


@cache
def tiny_tokenizer() -> PreTrainedTokenizerBase:
    """Return a tokenizer with word pieces: `good` is one token, `goodly` is good + ##ly."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    entries = [*SPECIAL, *WORDS, *PIECES, *(f"w{i}" for i in range(60))]
    inner: Any = Tokenizer(
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


def tiny_model(
    architecture: str = "bert",
    classes: int = 2,
    dtype: torch.dtype = torch.float64,
    *,
    qa: bool = False,
    choices: bool = False,
    projection: str = "softmax",
) -> Model:
    """Build a random classifier, question answerer or multiple-choice model in double precision.

    The same arguments give the same weights. Only a bilstm and a transformer have a `projection`.
    """
    import transformers

    known = (*ARCHITECTURES, *WITHOUT_BLOCKS, *PARTLY_SERVED)
    if architecture not in known:
        raise unknown("architecture", architecture, known)
    register_architectures()
    tokenizer = tiny_tokenizer()
    task = "QuestionAnswering" if qa else "MultipleChoice" if choices else "SequenceClassification"
    auto: Any = getattr(transformers, f"AutoModelFor{task}")
    with torch.random.fork_rng():
        torch.manual_seed(0)
        config = _config(architecture, classes, len(tokenizer), projection)
        network = auto.from_config(config)
        # Biases start at 0 and norms at 1, where a wrong rule for them would not show.
        with torch.no_grad():
            for parameter in network.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
    sparse = "" if projection == "softmax" else f"-{projection}"
    return build_model(
        f"tiny-{architecture}",
        network.to(dtype),
        tokenizer,
        labels=() if qa else tuple(f"class {i}" for i in range(classes)),
        weights_sha256=f"{architecture}-{classes}{'-qa' * qa}{'-choices' * choices}{sparse}",
    )


def _config(architecture: str, classes: int, vocabulary: int, projection: str) -> Any:
    import transformers

    common: dict[str, Any] = {"vocab_size": vocabulary, "pad_token_id": 0, "num_labels": classes}
    encoder = common | {
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 48,
        "max_position_embeddings": 70,
    }
    if architecture == "gpt2":
        sizes: dict[str, Any] = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 70}
        ends: dict[str, Any] = {"bos_token_id": 2, "eos_token_id": 3}
        return transformers.GPT2Config(**common, **sizes, **ends)
    if architecture in WITHOUT_BLOCKS:
        widths = {} if architecture == "cnn" else {"embedding_size": 12, "projection": projection}
        return transformers.AutoConfig.for_model(
            architecture, **common, **widths, hidden_size=16, max_position_embeddings=64
        )
    if architecture in ("t5", "bart"):
        return _with_decoder(architecture, common)
    if architecture == "xlnet":
        return transformers.XLNetConfig(**common, d_model=32, n_layer=2, n_head=4, d_inner=48)
    if architecture == "distilbert":
        return transformers.DistilBertConfig(
            **common, dim=32, n_layers=2, n_heads=4, hidden_dim=48, max_position_embeddings=70
        )
    if architecture in ("electra", "albert"):
        encoder["embedding_size"] = 16
    if architecture == "longformer":
        encoder["attention_window"] = 8
        encoder["max_position_embeddings"] = 82  # whole windows, behind those that padding takes
    configs: dict[str, Any] = {
        "bert": transformers.BertConfig,
        "roberta": transformers.RobertaConfig,
        "electra": transformers.ElectraConfig,
        "albert": transformers.AlbertConfig,
        "longformer": transformers.LongformerConfig,
        "fnet": transformers.FNetConfig,
    }
    return configs[architecture](**encoder)


def _with_decoder(architecture: str, common: dict[str, Any]) -> Any:
    """Return sizes of an encoder and a decoder; texts end with the tokenizer's [SEP]."""
    import transformers

    ends: dict[str, Any] = {"eos_token_id": 3, "decoder_start_token_id": 2}
    if architecture == "t5":
        return transformers.T5Config(
            **common, **ends, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4
        )
    sides: dict[str, Any] = {
        f"{side}_{size}": number
        for side in ("encoder", "decoder")
        for size, number in {"layers": 2, "attention_heads": 4, "ffn_dim": 48}.items()
    }
    return transformers.BartConfig(
        **common, **ends, **sides, d_model=32, max_position_embeddings=70, bos_token_id=2
    )
