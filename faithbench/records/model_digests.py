"""Digests of the bundled models, for records from before a model was more than its weights.

Such a record has the digest of base and adapter weights. The other files of a bundled model are
fixed by the package that it comes in, so that the digest of the whole is known without them. The
table is history: models that are bundled later are recorded with both digests.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

MODEL_OF_WEIGHTS: Final[Mapping[str, str]] = MappingProxyType(
    {
        # agnews
        "e48c23fc0d87923b4fc9c5ec5b85615f10c6f7749e037be042b183336aca284f": (
            "61aee76f84d8f37bbe3253c665b3d07449c4f7d70422011093af7249c5a049d1"
        ),
        # cad-nli
        "5b6c67271a81e3abb707bb37825ae543685c9cb76f421cf3e358c72526655247": (
            "d71d64f5d2d2766f338d89a7c327ad6e05a67dad8b811a85c93e55d7d4bd3b4c"
        ),
        # cola
        "00803110a7872adebc5194c9081fbff2735134af79ced36ca3314926810979e2": (
            "62ac181278b2087d0defe60e0a7fdb7aab5dc16a76cfd2633117aebac4a43ef0"
        ),
        # evinf
        "3648efbcd248c410d4dec8802c4bfeaf95ea6680b2d789a4c2452c0803fa61b4": (
            "367da8a002028e9a5626061d61bc4e9fd8a73c31b5eae60e3b047881eb7785b2"
        ),
        # hatexplain
        "c6f9e0b1899d008f64b91d95d45d76ee2c79091e59ce75b087e85b07aade1e1e": (
            "7d6a810f82f588d7b87d80deba8b0ef277d1648fa8947bed173491d21ff44d90"
        ),
        # imdb
        "8a57ebeb5da618db10baf427c87e0b9582d2b00b34c34087b9c305065d3f7c46": (
            "30fa1199f8c5bc124a1b00dc43c3ff3506831e5a137ad41b095460260deafb3f"
        ),
        # movies
        "d627ac60ca04ab4b1f09122affaff62ec625650e55a23a700e1259efcfc79549": (
            "5e70c57a2cc94c07690bc20c99f9ceacd14066af29e54cd55eb39c8db5fac048"
        ),
        # mrpc
        "92bb363704c8b0fbb3d4ed288fbda5c7319bce400c99291b16f46ab6f349a39e": (
            "76b2bce8d9506edbde83ec6efc17213c3d5e9a3d0bd1481ea237be418f39042a"
        ),
        # multirc
        "06d9accd220a618e0afc1b95fc9f063f13edb629cd97f7e3716c58399f06b8bd": (
            "a842e83b1dea64a7d9de5687651fa8b4c0300a7569654cacb9f8b42cb35e5e00"
        ),
        # semeval
        "fc221949d11237da01d60646f1126c82c73d707b5b073e387c82f5fdfd99695a": (
            "7c32bf9f57a21e22cebd31dfa9b0c27fe8d1e47782799f464c49dbe3a24ffd15"
        ),
        # squad
        "ca4e8f0a0cebfb6aed675297e2cb39e659a04074d6bb8528a3b7253aa5db8247": (
            "b106f19c297a7e1425271db38307b0999c0996986cbe31aa573dcf39c9394df1"
        ),
        # squad2
        "54ed1b6b434a240c4cbe978f4999a4fa5c85d2c8758702f6874b4e1321a8c632": (
            "ee3e48283ad0265db6faf7e16d2a270d602950a1f9b0117a90e8ddf2a827062b"
        ),
        # sst2
        "6561e29c7f1819ec71b9996f2c720d8d891e47a1d1b7943e49c3a19ab79cf484": (
            "f4902b03bb1a1808e2eb19f5d4cb692672a69998b1ecbcaf50487d281aa31a41"
        ),
        # yelp
        "442964517058efeeaa55f6d9722a7be34890ee86c9d98ba22140a71c8deb4180": (
            "80cc010ef684d6add58bac817e2c8ae8bf2560396847ef224d59d8e0d081534d"
        ),
    }
)
"""The digest of each bundled model by that of its weights."""


def add_model_digest(data: dict[str, Any]) -> dict[str, Any]:
    """Return the data of a record with the digest of its model; None if the model is not bundled.

    The digest of the weights, by which the record was known, is kept.
    """
    model = data.get("model")
    if not isinstance(model, dict):
        return data  # for the schema to refuse
    name, weights = model.get("name"), model.get("weights_sha256")
    bundled = str(name).startswith("bundled:")
    sha256 = MODEL_OF_WEIGHTS.get(str(weights)) if bundled else None
    return {**data, "model": {**model, "sha256": sha256}}
