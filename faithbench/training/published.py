"""Scores that the papers report for full-size models, to put beside a small one's."""

from __future__ import annotations

from dataclasses import dataclass

_SALOSS = (
    "Chrysostomou and Aletras (2021). Enjoy the Salience: Towards Better Transformer-based "
    "Faithful Explanations with Word Salience. EMNLP 2021. Table 1, baseline"
)
_L2E = "Situ et al. (2021). Learning to Explain: Generating Stable Explanations Fast. ACL 2021."
_TEXTATTACK = "Model card of textattack/bert-base-uncased-{} (2020) on the Hugging Face hub"
_BERT = (
    "Devlin et al. (2019). BERT: Pre-training of Deep Bidirectional Transformers for Language "
    "Understanding. NAACL 2019."
)


@dataclass(frozen=True)
class Published:
    """One reported score; `note` says in what its data differ from ours."""

    model: str
    metric: str
    score: float
    source: str
    note: str = ""


PUBLISHED: dict[str, tuple[Published, ...]] = {
    "sst2": (Published("BERT-base", "macro_f1", 0.91, _SALOSS),),
    "agnews": (
        Published("BERT-base", "macro_f1", 0.93, _SALOSS, "trained on 102,000 rows"),
        Published(
            *("BERT-base", "accuracy", 0.951, _TEXTATTACK.format("ag-news")),
            "best of 5 epochs on its evaluation set",
        ),
        Published("BERT-base", "accuracy", 0.926, f"{_L2E} Section 4.1"),
    ),
    "evinf": (
        Published("SciBERT", "macro_f1", 0.82, _SALOSS, "ERASER's version: 5,789 and 720 rows"),
    ),
    "multirc": (
        Published("RoBERTa-base", "macro_f1", 0.76, _SALOSS, "trained on all 24,029 rows"),
    ),
    "semeval": (
        Published("BERT-base", "macro_f1", 0.58, _SALOSS, "6,000 training and 20,630 test tweets"),
    ),
    "imdb": (
        Published(
            *("BERT-base", "accuracy", 0.891, _TEXTATTACK.format("imdb")),
            "first 128 tokens; best of 5 epochs on its evaluation set",
        ),
    ),
    "squad": (
        Published(
            "BERT-base",
            "f1",
            0.885,
            f"{_BERT} Table 2",
            "trained on 87,599 rows, judged on all of dev",
        ),
        Published("BERT-base", "exact_match", 0.808, f"{_BERT} Table 2", "as above"),
    ),
    "cola": (
        Published("BERT-base", "matthews", 0.521, f"{_BERT} Table 1", "GLUE's hidden test"),
        Published("ALBERT", "accuracy", 0.74, f"{_L2E} Section 4.1", "which test rows is not said"),
    ),
    "imdb_r": (
        Published(
            *("Longformer", "accuracy", 0.745, f"{_L2E} Appendix F"),
            "with a third class, for reviews whose rationales are masked",
        ),
    ),
}
