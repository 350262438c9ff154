"""A small hub on loopback that speaks the protocol of the Hugging Face hub to its real clients."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from faithbench.data import hub

_RESOLVE = re.compile(r"/(?:(datasets)/)?([^/]+/[^/]+)/resolve/([^/]+)/(.+)")
_API = re.compile(r"/api/(models|datasets)/([^/]+/[^/]+)(?:/(revision|tree|paths-info)/([^/]+))?.*")


@dataclass
class Repository:
    """A repository with one commit, and how the hub behaves when it is asked for it.

    `gated` answers 401. `pauses` are seconds before the bytes of a file, `breaks_at` are bytes of
    a file after which the connection is closed; one of either for each time that it is asked for.
    """

    files: dict[str, bytes]
    commit: str = "0123456789" * 4
    gated: bool = False
    pauses: dict[str, list[float]] = field(default_factory=dict)
    breaks_at: dict[str, list[int]] = field(default_factory=dict)


@dataclass(frozen=True)
class Asked:
    """One request: what was asked for, and from which byte on."""

    method: str
    path: str
    start: int = 0


@dataclass
class Hub:
    """The repositories of a hub, by `models/owner/name` or `datasets/owner/name`."""

    url: str
    repositories: dict[str, Repository] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def downloads(self, file: str) -> list[Asked]:
        """Return the requests for the bytes of one file, in order."""
        return [ask for ask in self.asked if ask.method == "GET" and ask.path.endswith(file)]


@contextmanager
def serve_hub(root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """Serve a hub on a free port, with the libraries of this process sent there, until the end."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        server.daemon_threads = True
        served = Hub(f"http://127.0.0.1:{server.server_port}")
        server.hub = served  # type: ignore[attr-defined]  # handlers get the server alone
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        _send_clients(served.url, root, monkeypatch)
        try:
            yield served
        finally:
            from huggingface_hub.utils import close_session

            close_session()  # its connections would keep the handlers waiting
            server.shutdown()
            thread.join()
            hub.forget()


def _send_clients(url: str, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Point the clients to a hub, as HF_ENDPOINT would have before they were imported."""
    import datasets.config
    import transformers.utils.hub
    from huggingface_hub import constants, hf_api
    from huggingface_hub.hf_file_system import HfFileSystem

    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "")
    monkeypatch.setenv("HF_ENDPOINT", url)
    monkeypatch.setenv("HF_DATASETS_CACHE", str(root / "datasets"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(hf_api.api, "endpoint", url)
    monkeypatch.setattr(transformers.utils.hub, "_hf_api", None)  # made at its first use
    template = f"{url}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(root / "hub"))
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_ENDPOINT", url)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", root / "datasets")
    HfFileSystem.clear_instance_cache()  # one is kept per endpoint, with what it has listed
    hub.forget()


class _Answer(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self) -> None:
        self._answer()

    def do_GET(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def log_message(self, *_: object) -> None:
        """Keep the terminal clean."""

    def _answer(self) -> None:
        served: Hub = self.server.hub  # type: ignore[attr-defined]
        path = unquote(urlsplit(self.path).path)
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").split("-")[0])
        served.asked.append(Asked(self.command, path, start))
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        match = _RESOLVE.fullmatch(path) or _API.fullmatch(path)
        if path == "/":
            self._say(b"a hub")
        elif match is None:
            self._refuse(HTTPStatus.NOT_FOUND, "EntryNotFound", "no such page")
        elif match.re is _RESOLVE:
            self._serve(served, match[1] or "models", match[2], match[3], match[4], start)
        else:
            self._tell(served, match[1], match[2], match[3], match[4] or "main", body)

    def _open(self, served: Hub, kind: str, name: str, revision: str) -> Repository | None:
        """Return a repository that the caller may see at this revision, or refuse."""
        repository = served.repositories.get(f"{kind}/{name}")
        if repository is None:
            self._refuse(HTTPStatus.UNAUTHORIZED, "RepoNotFound", "Repository not found")
        elif revision not in ("main", repository.commit):
            message = f"Invalid rev id: {revision}"
            self._refuse(HTTPStatus.NOT_FOUND, "RevisionNotFound", message)
        else:
            return repository
        return None

    def _serve(
        self, served: Hub, kind: str, name: str, revision: str, file: str, start: int
    ) -> None:
        """Answer a request for a file."""
        repository = self._open(served, kind, name, revision)
        if repository is None:
            return
        if repository.gated:
            message = f"Access to {name} is restricted. You must be authenticated to access it."
            self._refuse(HTTPStatus.UNAUTHORIZED, "GatedRepo", message)
        elif file not in repository.files:
            message = "Entry not found"
            self._refuse(HTTPStatus.NOT_FOUND, "EntryNotFound", message, repository.commit)
        else:
            self._send(repository, file, start)

    def _tell(
        self, served: Hub, kind: str, name: str, view: str | None, revision: str, body: bytes
    ) -> None:
        """Answer a question of the API, which shows the names of gated files too."""
        repository = self._open(served, kind, name, revision)
        if repository is not None:
            self._list(repository, name, view, body)

    def _list(self, repository: Repository, name: str, view: str | None, body: bytes) -> None:
        """Send facts of a repository, its tree, or some of its paths."""
        if view in (None, "revision"):
            siblings = [{"rfilename": file} for file in repository.files]
            facts = {"id": name, "sha": repository.commit, "siblings": siblings, "private": False}
            return self._say(json.dumps(facts).encode(), kind="application/json")
        folder = unquote(urlsplit(self.path).path).partition("/tree/")[2].partition("/")[2]
        wanted = json.loads(body)["paths"] if view == "paths-info" else list(repository.files)
        entries: list[dict[str, object]] = []
        for file, content in repository.files.items():
            if file in wanted and (not folder or file.startswith(f"{folder}/")):
                oid = hashlib.sha1(content).hexdigest()
                entries.append({"type": "file", "path": file, "size": len(content), "oid": oid})
        folders = {str(parent) for file in repository.files for parent in Path(file).parents}
        for path in sorted(folders - {"."}):
            if view == "tree" or path in wanted:
                entries.append({"type": "directory", "path": path, "size": 0, "oid": "0" * 40})
        return self._say(json.dumps(entries).encode(), kind="application/json")

    def _send(self, repository: Repository, file: str, start: int) -> None:
        """Send a file from a byte on; where it is to break off, say its length and then close."""
        content = repository.files[file]
        part = content[start:]
        self.send_response(HTTPStatus.PARTIAL_CONTENT if start else HTTPStatus.OK)
        self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", repository.commit)
        self.send_header("Accept-Ranges", "bytes")
        self.send_header("Connection", "keep-alive" if self.command == "HEAD" else "close")
        self.send_header("Content-Length", str(len(part)))
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")
        self.end_headers()
        if self.command == "HEAD":
            return
        if pauses := repository.pauses.get(file):
            time.sleep(pauses.pop(0))
        ends = repository.breaks_at.get(file)
        with suppress(ConnectionError):  # of a client that was not ready to wait
            self.wfile.write(content[start : ends.pop(0)] if ends else part)
        self.close_connection = True

    def _refuse(self, status: HTTPStatus, code: str, message: str, commit: str = "") -> None:
        headers = {"X-Error-Code": code, "X-Error-Message": message}
        if commit:  # of a file that this commit lacks, which clients remember
            headers["X-Repo-Commit"] = commit
        self._say(b"", status, headers=headers)

    def _say(
        self,
        content: bytes,
        status: HTTPStatus = HTTPStatus.OK,
        kind: str = "text/plain",
        headers: dict[str, str] | None = None,
    ) -> None:
        self.send_response(status)
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
