"""The start of a network trained from scratch: its vocabulary, its word vectors, its sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from faithbench.core.errors import FaithbenchError, unknown
from faithbench.core.types import Example
from faithbench.data.kinds import KINDS
from faithbench.data.tasks import Task
from faithbench.models.architectures import ARCHITECTURES, ATTENTIVE, register_architectures
from faithbench.models.architectures.projections import projection_name
from faithbench.training.recipe import Recipe, Splits
from faithbench.training.vectors import covered, find_vectors, word_vectors

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerFast

SPECIAL = ("[PAD]", "[UNK]", "[MASK]")
"""The first entries of every vocabulary: all three start, and stay, at the vector 0."""

LONGEST = 512
"""Tokens of the longest input, unless training texts are shorter or `max_tokens` is given."""

USUAL_WIDTH = 100


def settle_scratch(recipe: Recipe) -> Recipe:
    """Fill in the width, which is that of narrow vectors unless one is asked for.

    Attentive networks are trained as Meister et al. do, by Adam with AMSGrad and without decay.
    """
    check_arch(recipe)
    width = recipe.width or min(USUAL_WIDTH, find_vectors(recipe.vectors).width)
    recipe = replace(recipe, width=width, method="full")
    if recipe.arch not in ATTENTIVE:
        return recipe
    projection = projection_name(recipe.projection or "softmax")
    return replace(recipe, projection=projection, weight_decay=0.0, amsgrad=True)


def check_arch(recipe: Recipe) -> None:
    """Refuse an unknown architecture, and a projection that is unknown or has no attention."""
    if recipe.arch and recipe.arch not in ARCHITECTURES:
        raise unknown("architecture", recipe.arch, ARCHITECTURES)
    if not recipe.projection:
        return
    if recipe.arch not in ATTENTIVE:
        raise FaithbenchError(
            f"--projection {recipe.projection} is for the attention of networks trained from "
            f"scratch; give --arch {' or '.join(ATTENTIVE)}, or leave it out"
        )
    projection_name(recipe.projection)


def vectors_origin(recipe: Recipe) -> tuple[str, Path, str]:
    """Return the name, the place and the digest of the word vectors a training starts from."""
    source = find_vectors(recipe.vectors)
    return source.name, source.place() or Path(), source.sha256


def start_network(
    task: Task, recipe: Recipe, splits: Splits
) -> tuple[PreTrainedModel, PreTrainedTokenizerFast]:
    """Make a network of the recipe's architecture and its tokenizer; torch must be seeded.

    The vocabulary is that of train, and of the words of dev and test those that the vectors have,
    as if the whole collection had been taken: they are never trained. All others are [UNK].
    """
    import transformers

    _check_kind(task, recipe)
    register_architectures()
    words = _vocabulary(recipe, splits)
    tokenizer = word_tokenizer(words)
    tokenizer.model_max_length = recipe.max_tokens or LONGEST
    sizes: dict[str, Any]
    if recipe.arch in ATTENTIVE:
        sizes = {"embedding_size": recipe.width, "projection": recipe.projection}
    else:
        # A convolutional network has weights for each position: it has no more than train needs.
        longest = _longest(tokenizer, splits.train.examples)
        tokenizer.model_max_length = min(longest, tokenizer.model_max_length)
        sizes = {"hidden_size": recipe.width, "query": KINDS[task.kind].texts == 2}
    config = transformers.AutoConfig.for_model(
        recipe.arch,
        **sizes,
        vocab_size=len(words) + len(SPECIAL),
        max_position_embeddings=tokenizer.model_max_length,
        dropout=recipe.encoder_dropout,
        id2label=dict(enumerate(task.labels)),
        label2id={label: i for i, label in enumerate(task.labels)},
    )
    network = transformers.AutoModelForSequenceClassification.from_config(config)
    vectors = word_vectors(recipe.vectors, words, recipe.width, recipe.seed)
    with torch.no_grad():
        table: Any = network.get_input_embeddings()
        table.weight.zero_()
        table.weight[len(SPECIAL) :] = torch.tensor(vectors, dtype=table.weight.dtype)
    return network, tokenizer


def _check_kind(task: Task, recipe: Recipe) -> None:
    """Refuse a task of a kind that the architecture does not read."""
    kind, one_text = KINDS[task.kind], recipe.arch in ATTENTIVE
    if kind.network == "SequenceClassification" and not (one_text and kind.texts == 2):
        return
    raise FaithbenchError(
        f"task {task.name} is of kind {task.kind}, and a {recipe.arch} only classifies "
        f"{'single texts' if one_text else 'texts and pairs'}; train an encoder without --arch"
    )


def word_tokenizer(words: Iterable[str]) -> PreTrainedTokenizerFast:
    """Return a tokenizer into lower-case words and punctuation, with nothing added around them.

    The second text of a pair has type 1.
    """
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    entries = {word: i for i, word in enumerate((*SPECIAL, *words))}
    inner: Any = Tokenizer(models.WordLevel(entries, unk_token="[UNK]"))
    inner.normalizer = normalizers.Lowercase()
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="$A", pair="$A $B:1", special_tokens=[]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, pad_token="[PAD]", unk_token="[UNK]", mask_token="[MASK]"
    )


def _vocabulary(recipe: Recipe, splits: Splits) -> list[str]:
    """Return the words of train, frequent ones first, then those of dev and test with vectors."""
    counts = Counter(_words(splits.train.examples))
    if not counts:
        raise FaithbenchError(
            f"the {len(splits.train.examples)} training texts of task {splits.train.task.name} "
            "have no words, so that there is no vocabulary; check the task's text columns"
        )
    trained = sorted(counts, key=lambda word: (-counts[word], word))
    others = sorted({*_words((*splits.dev.examples, *splits.test.examples))} - set(counts))
    return [*trained, *covered(recipe.vectors, others)]


def _words(examples: Iterable[Example]) -> Iterable[str]:
    inner: Any = word_tokenizer(()).backend_tokenizer
    for example in examples:
        for text in (example.text, example.text_b or ""):
            lower = inner.normalizer.normalize_str(text)
            yield from (word for word, _ in inner.pre_tokenizer.pre_tokenize_str(lower))


def _longest(tokenizer: PreTrainedTokenizerFast, examples: Iterable[Example]) -> int:
    """Return the tokens of the longest example, both texts together."""
    pairs = [(example.text, example.text_b) for example in examples]
    return max(len(tokenizer(*[text for text in pair if text])["input_ids"]) for pair in pairs)
