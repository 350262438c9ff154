"""The hub: reached, refused, hanging, behind a proxy. A local socket plays its part."""

from __future__ import annotations

import os
import socket
import sys
import time
from collections.abc import Iterator
from types import ModuleType

import pytest

from faithbench.data import hub

PROXIES = ("http_proxy", "https_proxy", "all_proxy", "no_proxy")


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    # Set, not deleted: so that what prepare_offline() writes is taken back afterwards.
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_ENDPOINT"):
        monkeypatch.setenv(name, "")
    for name in PROXIES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    hub.forget()
    yield
    hub.forget()


@pytest.fixture
def open_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


@pytest.fixture
def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port: int = server.getsockname()[1]
    return port


def test_an_open_port_is_reachable(monkeypatch: pytest.MonkeyPatch, open_port: int) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{open_port}")
    assert hub.hub_reachable()


def test_a_closed_port_is_not(monkeypatch: pytest.MonkeyPatch, closed_port: int) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port}")
    begun = time.monotonic()
    assert not hub.hub_reachable()
    assert time.monotonic() - begun < 5


def test_an_unresolvable_host_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://nowhere.invalid")
    begun = time.monotonic()
    assert not hub.hub_reachable()
    assert time.monotonic() - begun < 5


def test_hanging_name_resolution_is_cut_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(socket, "getaddrinfo", lambda *args, **kwargs: time.sleep(3) or [])
    begun = time.monotonic()
    assert not hub.hub_reachable(timeout=0.2)
    assert time.monotonic() - begun < 1.5


def test_no_timeout_goes_beyond_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[float] = []

    def connects(host: str, port: int, timeout: float) -> bool:
        asked.append(timeout)
        return False

    with monkeypatch.context() as patch:
        patch.setattr(hub, "_connects", connects)
        assert not hub.hub_reachable(timeout=60)
    assert asked == [4.5]


@pytest.mark.parametrize(
    "endpoint", ["huggingface", "http://[::1", "http://host:99999", "https://"]
)
def test_a_malformed_endpoint_is_not_reachable(
    monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", endpoint)
    assert not hub.hub_reachable(timeout=0.5)


@pytest.mark.parametrize("name", ["HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"])
@pytest.mark.parametrize("value", ["1", "true", "YES", "on"])
def test_offline_variables_answer_at_once(
    monkeypatch: pytest.MonkeyPatch, open_port: int, name: str, value: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{open_port}")
    monkeypatch.setenv(name, value)
    assert not hub.hub_reachable()
    monkeypatch.setenv(name, "0")
    assert hub.hub_reachable()


def test_the_answer_is_remembered_until_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{server.getsockname()[1]}")
        assert hub.hub_reachable()
    assert hub.hub_reachable()
    hub.forget()
    assert not hub.hub_reachable()


@pytest.mark.parametrize("scheme", ["", "http://"])
def test_a_proxy_is_probed_in_place_of_the_hub(
    monkeypatch: pytest.MonkeyPatch, open_port: int, closed_port: int, scheme: str
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", "https://nowhere.invalid")
    monkeypatch.setenv("HTTPS_PROXY", f"{scheme}127.0.0.1:{open_port}")
    assert hub.hub_reachable()
    monkeypatch.setenv("HTTPS_PROXY", f"{scheme}127.0.0.1:{closed_port}")
    assert not hub.hub_reachable()


def test_no_proxy_goes_straight_to_the_hub(
    monkeypatch: pytest.MonkeyPatch, open_port: int, closed_port: int
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{open_port}")
    monkeypatch.setenv("HTTP_PROXY", f"127.0.0.1:{closed_port}")
    assert not hub.hub_reachable()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    assert hub.hub_reachable()


def test_default_addresses(monkeypatch: pytest.MonkeyPatch) -> None:
    assert hub._address() == ("huggingface.co", 443)
    monkeypatch.setenv("ALL_PROXY", "socks5://proxy.example")
    assert hub._address() == ("proxy.example", 1080)


def test_prepare_offline_sets_variables_and_loaded_libraries(
    monkeypatch: pytest.MonkeyPatch, closed_port: int
) -> None:
    constants = ModuleType("huggingface_hub.constants")
    config = ModuleType("datasets.config")
    for module in (constants, config):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{closed_port}")
    hub.prepare_offline()
    assert (os.environ["HF_HUB_OFFLINE"], os.environ["HF_DATASETS_OFFLINE"]) == ("1", "1")
    assert vars(constants)["HF_HUB_OFFLINE"] is True
    assert vars(config)["HF_HUB_OFFLINE"] is True


def test_prepare_offline_leaves_a_reachable_hub_alone(
    monkeypatch: pytest.MonkeyPatch, open_port: int
) -> None:
    monkeypatch.setenv("HF_ENDPOINT", f"http://127.0.0.1:{open_port}")
    monkeypatch.setattr(hub, "hub_hangs", lambda: False)
    hub.prepare_offline()
    assert os.environ["HF_HUB_OFFLINE"] == ""
