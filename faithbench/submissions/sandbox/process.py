"""Run untrusted code in a subprocess, with limits on its time and its output."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import faithbench
from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.core.text import readable
from faithbench.submissions.sandbox.bubblewrap import wrapped
from faithbench.submissions.sandbox.confine import MB, Limits
from faithbench.submissions.sandbox.messages import Confined

# Settings that a worker shares: threads, the cache of models, and the language of messages.
_INHERITED = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HOME", "HF_HUB_CACHE", "LANG", "LC_ALL")
_GRACE = 2  # seconds to end in, after both pipes were closed


def run_isolated(
    command: Sequence[str], home: Path, limits: Limits, on_line: Callable[[bytes], None]
) -> None:
    """Run a command until it ends, and pass each line that it sends to `on_line`.

    Its last argument is the descriptor to send through: what the code prints cannot be mistaken
    for it. Raises if the command takes, sends or prints too much, if it ends badly, or if
    `on_line` raises. In any case nothing of it is left running.
    """
    receive, send = os.pipe()
    process = subprocess.Popen(
        [*command, str(send)],
        cwd=home,
        env=_environment(home),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(send,),
        # A group of its own, so that whatever it starts can be ended with it.
        start_new_session=True,
    )
    os.close(send)  # else the pipe would stay open when the process ends
    assert process.stdout is not None  # it was asked for
    sent, printed = _Sent(limits.sent_mb, on_line), _Printed(limits.printed_mb)
    pipes = {receive: sent.take, process.stdout.fileno(): printed.take}
    try:
        _listen(process, pipes, limits.seconds)
        code = process.wait(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        raise FaithbenchError(
            "closed its pipes but went on running, and was stopped; an explainer must return"
        ) from None
    finally:
        _end(process)
        process.stdout.close()
        os.close(receive)
    if code:
        raise FaithbenchError(_ending(code, printed.tail))


@dataclass
class _Sent:
    """Cuts what a process sends into lines, up to a number of MB."""

    most_mb: int
    on_line: Callable[[bytes], None]
    size: int = 0
    line: bytearray = field(default_factory=bytearray)

    def take(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self.most_mb * MB:
            raise FaithbenchError(
                f"sent more than {self.most_mb} MB and was stopped; an explainer returns one "
                "score per token"
            )
        # A read ends anywhere: what follows the last newline waits for the next read.
        *ends, rest = data.split(b"\n")
        for end in ends:
            self.on_line(bytes(self.line + end))
            self.line.clear()
        self.line += rest


@dataclass
class _Printed:
    """Keeps the end of what a process prints, up to a number of MB, to explain a failure."""

    most_mb: int
    size: int = 0
    tail: bytes = b""

    def take(self, data: bytes) -> None:
        self.size += len(data)
        if self.size > self.most_mb * MB:
            raise FaithbenchError(
                f"printed more than {self.most_mb} MB and was stopped; an explainer must not print"
            )
        self.tail = (self.tail + data)[-500:]


def _listen(
    process: subprocess.Popen[bytes], pipes: Mapping[int, Callable[[bytes], None]], seconds: int
) -> None:
    """Read pipes to their ends, in at most some seconds, and pass on what comes."""
    deadline = time.monotonic() + seconds
    with selectors.DefaultSelector() as selector:
        for descriptor, take in pipes.items():
            selector.register(descriptor, selectors.EVENT_READ, take)
        while selector.get_map():
            if time.monotonic() > deadline:
                raise FaithbenchError(
                    f"took longer than {seconds} s and was stopped; make it faster, or give it "
                    "more --seconds"
                )
            # Not until the deadline: a process can end while a child of it holds a pipe open.
            ready = selector.select(timeout=0.2)
            if not ready and process.poll() is not None:
                return
            for key, _ in ready:
                if data := os.read(key.fd, 1 << 16):
                    key.data(data)
                else:
                    selector.unregister(key.fd)


def enforced_here() -> Confined:
    """Return which limits hold on this machine, as a process finds that confines itself."""
    lines: list[bytes] = []
    with temporary_folder() as home:
        command = (sys.executable, "-m", "faithbench.submissions.sandbox.confine")
        run_isolated(wrapped(command, home), home, Limits(seconds=60), lines.append)
    return Confined.model_validate_json(lines[0], strict=True)


def _ending(code: int, printed: bytes) -> str:
    """Describe in one line how a process failed: exit code or signal, and its last output."""
    last = readable(printed.decode(errors="replace")[-200:])
    output = f"it last printed: {last}" if last else "it printed nothing"
    # Minus the number of a signal; bubblewrap tells it as 128 and the number.
    by_signal = -code if code < 0 else code - 128
    if by_signal in signal.valid_signals():
        ending = f"was ended by a signal ({signal.strsignal(by_signal)})"
    else:
        ending = f"ended with exit code {code}"
    return f"{ending} before it had sent all scores; {output}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill a process with all that it started in its group."""
    with suppress(ProcessLookupError, PermissionError):  # already ended
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _environment(home: Path) -> dict[str, str]:
    """Return an environment without secrets, and with the temporary folder as home."""
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    # Named, since with another HOME the libraries would look for models elsewhere.
    cache = Path.home() / ".cache" / "huggingface"
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(faithbench.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "HF_HOME": str(cache),
        **inherited,
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
