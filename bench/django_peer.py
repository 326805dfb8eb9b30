"""A Django server for the textbook's sale, installed into an environment of its own in bench/out and kept there.

One gunicorn worker with 16 threads, as the FastAPI textbook has one process with 16 connections.
"""

import contextlib
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

HOME = Path(__file__).parent / "out" / "django"
WANTED = ("django==5.2.8", "psycopg[binary]==3.3.8", "gunicorn==23.0.0")
INSTALL_WITHIN_S = 180
START_WITHIN_S = 30


def python_with_django() -> str | None:
    """A Python that can import Django, installed now if there is none yet; None when that does not work here."""
    python = HOME / "bin" / "python"
    if not (HOME / "ready").exists():
        uv = str(Path(sys.executable).parent / "uv")
        make = [uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(HOME)]
        install = [uv, "pip", "install", "--quiet", "--python", str(python), *WANTED]
        try:
            subprocess.run(make, check=True, timeout=INSTALL_WITHIN_S)
            subprocess.run(install, check=True, timeout=INSTALL_WITHIN_S)
        except (subprocess.SubprocessError, OSError) as error:
            print(f"Django is not measured: it cannot be installed here ({error})")
            return None
        (HOME / "ready").touch()
    return str(python)


@contextlib.contextmanager
def django_server(python: str, url: str) -> Iterator[tuple[int, int]]:
    """(pid, port) of the server."""
    sock = socket.create_server(("127.0.0.1", 0), backlog=1024)
    port = sock.getsockname()[1]
    command = [
        python,
        "-m",
        "gunicorn",
        "--bind",
        f"fd://{sock.fileno()}",
        "--workers",
        "1",
        "--worker-class",
        "gthread",
        "--threads",
        "16",
        "--worker-connections",
        "1000",
        "--log-level",
        "warning",
        "django_textbook:application",
    ]
    env = os.environ | {"TEXTBOOK_URL": url, "PYTHONPATH": str(Path(__file__).parent)}
    process = subprocess.Popen(command, env=env, pass_fds=[sock.fileno()])
    try:
        _wait(port, process)
        yield process.pid, port
    finally:
        process.terminate()
        process.wait(30)
        sock.close()


def _wait(port: int, process: "subprocess.Popen[bytes]") -> None:
    deadline_s = time.monotonic() + START_WITHIN_S
    while time.monotonic() < deadline_s and process.poll() is None:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 5) as line:
            line.settimeout(5)
            line.sendall(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            if line.recv(12).startswith(b"HTTP/1.1 404"):
                return
        time.sleep(0.1)
    raise SystemExit("the Django server did not start in time")
