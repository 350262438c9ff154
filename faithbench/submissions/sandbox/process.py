"""A stranger's code in a process of its own: what it sends is read with a clock and a scale."""

from __future__ import annotations

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import faithbench
from faithbench.core.errors import FaithbenchError
from faithbench.core.files import temporary_folder
from faithbench.core.text import readable
from faithbench.submissions.sandbox.confine import MB, Limits
from faithbench.submissions.sandbox.messages import Confined

_KEPT = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "HF_HOME", "HF_HUB_CACHE", "LANG", "LC_ALL")
_GRACE = 2  # seconds to end, once nothing more can be sent


def run_isolated(
    command: Sequence[str], home: Path, limits: Limits, on_line: Callable[[bytes], None]
) -> None:
    """Run a command until it ends; its lines come through the descriptor it is given last.

    Raises if it takes, sends or prints too much, or ends badly, or if `on_line` does; in any
    case nothing of it is left running.
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
        start_new_session=True,
    )
    os.close(send)
    assert process.stdout is not None  # it was asked for
    try:
        printed = _listen(process, receive, process.stdout.fileno(), limits, on_line)
        code = process.wait(timeout=_GRACE)
    except subprocess.TimeoutExpired:
        raise FaithbenchError(
            "closed its line but went on running, and was stopped; an explainer returns"
        ) from None
    finally:
        _end(process)
        process.stdout.close()
        os.close(receive)
    if code:
        raise FaithbenchError(_ending(code, printed))


def _listen(
    process: subprocess.Popen[bytes],
    receive: int,
    prints: int,
    limits: Limits,
    on_line: Callable[[bytes], None],
) -> bytes:
    """Read both pipes to their ends, within the limits; return the end of what was printed."""
    deadline = time.monotonic() + limits.seconds
    sizes, line, tail = {receive: 0, prints: 0}, bytearray(), b""
    with selectors.DefaultSelector() as selector:
        selector.register(receive, selectors.EVENT_READ)
        selector.register(prints, selectors.EVENT_READ)
        while selector.get_map():
            if time.monotonic() > deadline:
                raise FaithbenchError(
                    f"took longer than {limits.seconds} s and was stopped; make it faster, or "
                    "give it more --seconds"
                )
            ready = selector.select(timeout=0.2)
            if not ready and process.poll() is not None:
                break  # somebody it started still holds a pipe
            for key, _ in ready:
                data = os.read(key.fd, 1 << 16)
                if not data:
                    selector.unregister(key.fd)
                sizes[key.fd] += len(data)
                if key.fd == prints:
                    tail = (tail + data)[-500:]
                    if sizes[prints] > limits.printed_mb * MB:
                        raise FaithbenchError(
                            f"printed more than {limits.printed_mb} MB and was stopped; "
                            "an explainer prints nothing"
                        )
                    continue
                if sizes[receive] > limits.sent_mb * MB:
                    raise FaithbenchError(
                        f"sent more than {limits.sent_mb} MB and was stopped; an explainer "
                        "returns one score per token"
                    )
                *whole, rest = data.split(b"\n")
                for part in whole:
                    on_line(bytes(line + part))
                    line.clear()
                line += rest
    return tail


def enforced_here() -> Confined:
    """Let a process confine itself, and say what holds on this machine."""
    lines: list[bytes] = []
    with temporary_folder() as home:
        command = (sys.executable, "-m", "faithbench.submissions.sandbox.confine")
        run_isolated(command, home, Limits(seconds=60), lines.append)
    return Confined.model_validate_json(lines[0], strict=True)


def _ending(code: int, printed: bytes) -> str:
    """Say how a process ended."""
    last = readable(printed.decode(errors="replace")[-200:])
    said = f"; it last printed: {last}" if last else "; it printed nothing"
    if code > 0:
        return f"ended with exit code {code} before it had sent all scores{said}"
    return f"was ended by a signal ({signal.strsignal(-code)}) before it had sent all scores{said}"


def _end(process: subprocess.Popen[bytes]) -> None:
    """End a process with all that it started in its session."""
    with suppress(ProcessLookupError, PermissionError):  # it has ended by itself
        os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _environment(home: Path) -> dict[str, str]:
    """Return an environment that says nothing of this machine, nor holds any secret."""
    kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
    cache = Path.home() / ".cache" / "huggingface"
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONPATH": str(Path(faithbench.__file__).parents[1]),
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONNOUSERSITE": "1",
        "HF_HOME": str(cache),
        **kept,
        "HOME": str(home),
        "TMPDIR": str(home),
        "XDG_CACHE_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
