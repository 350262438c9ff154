"""The one door to the Hugging Face hub's datasets: is it open, is a copy here, give the rows."""

from __future__ import annotations

import hashlib
import json
import os
import re
import socket
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from faithbench.errors import FaithbenchError
from faithbench.hub_forms import check_columns, our_rows
from faithbench.task_parts import HubSource
from faithbench.tasks import SOURCES, Placed, Task

_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_TRUE = {"1", "ON", "YES", "TRUE"}  # what huggingface_hub itself takes for true
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_LONGEST = 4.5  # seconds; leaves room to answer within five


class Digest(Protocol):
    """What hashlib gives: it may be asked at any time, and says what it has seen so far."""

    def hexdigest(self) -> str:
        """Return the digest of what was read."""
        ...


def hub_reachable(timeout: float = 2.0) -> bool:
    """Say whether one TCP connection to the hub, or to the proxy before it, can be made.

    Takes `timeout` seconds at most, name resolution included, and asks each address once.
    """
    if any(os.environ.get(name, "").upper() in _TRUE for name in _OFFLINE):
        return False
    address = _address()
    return address is not None and _connects(*address, min(timeout, _LONGEST))


def forget() -> None:
    """Forget what was found, so that the next question probes again."""
    _connects.cache_clear()


def prepare_offline() -> None:
    """Tell the Hugging Face libraries to stay offline when the hub cannot be reached.

    Call it before they are imported: they read the variables once. If they are already
    there, their own switch is set too; else each call would retry for a minute or more.
    """
    if hub_reachable():
        return
    for name in _OFFLINE:
        os.environ[name] = "1"
    for name in ("huggingface_hub.constants", "datasets.config"):
        if (module := sys.modules.get(name)) is not None:
            module.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]  # a foreign module's switch


def dataset_cached(dataset: str, config: str | None, revision: str | None) -> bool:
    """Say whether `datasets`, offline, would load this dataset at this revision.

    Offline it ignores the revision asked for and takes the newest folder
    `<cache>/<owner>___<name>/<config>/<version>/<commit>`: so that one must be ours.
    """
    home = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{home}/huggingface"
    root = Path(os.environ.get("HF_DATASETS_CACHE") or f"{home}/datasets").expanduser()
    *owner, name = dataset.split("/")
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    name = re.sub(r"([a-z\d])([A-Z])", r"\1_\2", name).lower()
    folders = (root / "___".join([*owner, name])).glob(f"{config or '*'}/*/*")
    ages = [(path.stat().st_mtime, path.name) for path in folders if path.is_dir()]
    return bool(ages) and revision in (None, max(ages)[1])


def hub_rows(task: Task, split: str) -> tuple[Iterator[Placed], Digest]:
    """Return the rows of a split under our names, and a digest of their canonical JSON.

    The dataset is opened at once, its rows are read as they are asked for; the digest is that
    of all rows once the last one has been taken.
    """
    source = task.hub
    assert source is not None  # the caller has chosen the hub
    table = _load(task, source, split)
    check_columns(task, table.column_names)
    feature = table.features.get(source.columns.get("label", ""))
    names = list(getattr(feature, "names", None) or [])
    digest = hashlib.sha256()

    def rows() -> Iterator[Placed]:
        for number, found in enumerate(table):
            for row in our_rows(task, split, number, found, names):
                digest.update(json.dumps(row, sort_keys=True).encode() + b"\n")
                yield f"{source.dataset}, row {number}", row

    return rows(), digest


def _load(task: Task, source: HubSource, split: str) -> Any:
    prepare_offline()
    import datasets

    try:
        return datasets.load_dataset(
            source.dataset, source.config, split=source.splits[split], revision=source.revision
        )
    # Four libraries raise here, and their errors have no common base.
    except Exception as error:
        others = [name for name in SOURCES if name != "hub" and getattr(task, name)]
        raise FaithbenchError(
            f"cannot load {source.dataset} at {(source.revision or 'main')[:8]} from the hub "
            f"({type(error).__name__}: {' '.join(str(error).split())}); try again, or "
            f"use another source: {', '.join(others) or 'this task has none'}"
        ) from error


def _address() -> tuple[str, int] | None:
    """Return host and port to probe: the proxy's, where one stands before the hub."""
    endpoint = os.environ.get("HF_ENDPOINT") or "https://huggingface.co"
    hub = _host_and_port(endpoint)
    if hub is None:
        return None
    proxies = getproxies()
    proxy = proxies.get(endpoint.partition(":")[0].lower()) or proxies.get("all")
    if not proxy or proxy_bypass(hub[0]):
        return hub
    # Proxies are often given bare, as in "proxy.example:3128".
    return _host_and_port(proxy if "//" in proxy else f"http://{proxy}")


def _host_and_port(address: str) -> tuple[str, int] | None:
    try:
        url = urlsplit(address)
        port = url.port or _PORTS.get(url.scheme, 443)
    except ValueError:  # a malformed host, or a port that is no number up to 65535
        return None
    return (url.hostname, port) if url.hostname else None


@cache
def _connects(host: str, port: int, timeout: float) -> bool:
    """Try one connection in a thread that may be left behind: name resolution can hang."""
    connected = threading.Event()

    def connect() -> None:
        with suppress(OSError, UnicodeError):
            socket.create_connection((host, port), timeout=timeout).close()
            connected.set()

    thread = threading.Thread(target=connect, daemon=True)
    thread.start()
    thread.join(timeout)
    return connected.is_set()
