"""Is the Hugging Face hub reachable? Found out once, within seconds.

Its own libraries would retry for a minute or more.
"""

from __future__ import annotations

import os
import socket
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from urllib.parse import urlsplit
from urllib.request import Request, getproxies, proxy_bypass, urlopen

_OFFLINE = ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE")
_TRUE = {"1", "ON", "YES", "TRUE"}  # what huggingface_hub itself takes for true
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}
_LONGEST = 4.5  # seconds; leaves room to answer within five


def hub_reachable(timeout: float = 2.0) -> bool:
    """Return whether a TCP connection to the hub, or to the proxy before it, can be made.

    Takes at most `timeout` seconds, name resolution included; the answer is remembered.
    """
    if any(os.environ.get(name, "").upper() in _TRUE for name in _OFFLINE):
        return False
    address = _address()
    return address is not None and _connects(*address, min(timeout, _LONGEST))


def hub_hangs(timeout: float = _LONGEST) -> bool:
    """Return whether a hub that takes connections leaves a request unanswered.

    Any answer will do, even a refusal: what it means is left to the hub's own libraries.
    """
    return _hangs(_endpoint(), min(timeout, _LONGEST))


def forget() -> None:
    """Forget the answers, so that the hub is probed again."""
    _connects.cache_clear()
    _hangs.cache_clear()


def prepare_offline() -> None:
    """Tell the Hugging Face libraries to stay offline if the hub cannot be reached or hangs.

    They read the environment once, when they are imported; if that has happened, their own switch
    is set too.
    """
    if hub_reachable() and not hub_hangs():
        return
    # Also for processes that are started from here.
    for name in _OFFLINE:
        os.environ[name] = "1"
    for name in ("huggingface_hub.constants", "datasets.config"):
        if (module := sys.modules.get(name)) is not None:
            module.HF_HUB_OFFLINE = True  # type: ignore[attr-defined]  # a foreign module's switch


def _endpoint() -> str:
    return os.environ.get("HF_ENDPOINT") or "https://huggingface.co"


def _address() -> tuple[str, int] | None:
    """Return host and port to probe: the proxy's, where one stands before the hub."""
    endpoint = _endpoint()
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


# Answers are kept for the process: a hub that is gone would else cost seconds for every task.
@cache
def _connects(host: str, port: int, timeout: float) -> bool:
    connected = threading.Event()

    def connect() -> None:
        with suppress(OSError, UnicodeError):  # what does not connect leaves the event unset
            socket.create_connection((host, port), timeout=timeout).close()
            connected.set()

    _wait_for(connect, timeout)
    return connected.is_set()


@cache
def _hangs(endpoint: str, timeout: float) -> bool:
    answered = threading.Event()

    def ask() -> None:
        # A refusal, or a proxy that urllib does not know, is not silence.
        with suppress(Exception):
            urlopen(Request(endpoint, method="HEAD"), timeout=2 * timeout).close()
        answered.set()

    _wait_for(ask, timeout)
    return not answered.is_set()


def _wait_for(action: Callable[[], None], timeout: float) -> None:
    """Run an action in a thread that is left behind after `timeout`: name resolution can hang."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(timeout)
