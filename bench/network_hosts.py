"""Hosts on one machine: network namespaces joined by a cable (a veth pair) per pair of hosts that talk.

A cable that is cut is down at one end: packets are lost without a word, as in a real partition, and connections learn
of it only by their time limits. It needs root, `ip` (iproute2) and `nsenter` (util-linux).
"""

import contextlib
import os
import shutil
import socket
import subprocess
from contextlib import ExitStack
from typing import Self

from tests.support.processes import Process
from tests.support.servers import NOBODY, Postgres, Valkey

TOOLS = {"ip": "iproute2", "nsenter": "util-linux"}


def what_is_missing() -> str:
    """Why namespaces cannot be made here, or nothing."""
    missing = [f"{tool} ({package})" for tool, package in TOOLS.items() if shutil.which(tool) is None]
    if missing:
        return f"{', '.join(missing)} is not installed"
    if os.geteuid() != 0:
        return "network namespaces need root"
    name = f"frontrow-{os.getpid()}-try"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, text=True)
    if tried.returncode:
        return f"this machine makes no network namespace: {tried.stderr.strip()}"
    ip("netns", "del", name)
    return ""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


class Host:
    """One network namespace."""

    def __init__(self, name: str) -> None:
        self.name, self.namespace = name, f"frontrow-{os.getpid()}-{name}"

    @property
    def enter(self) -> list[str]:
        """What to put before a command so that it runs on this host."""
        return ["nsenter", f"--net=/run/netns/{self.namespace}", "--"]

    def ip(self, *words: str) -> None:
        ip("-n", self.namespace, *words)


class Cable:
    """Joins two hosts. `near` and `far` are their addresses on it."""

    def __init__(self, number: int, one: Host, other: Host) -> None:
        self.near, self.far = f"10.213.{number}.1", f"10.213.{number}.2"
        self._one, self._other, self._device = one, other, f"c{number}"
        first = ["link", "add", self._device, "netns", one.namespace, "type", "veth"]
        ip(*first, "peer", "name", self._device, "netns", other.namespace)
        for host, address in ((one, self.near), (other, self.far)):
            host.ip("addr", "add", f"{address}/30", "dev", self._device)
            host.ip("link", "set", self._device, "up")

    def cut(self) -> None:
        self._other.ip("link", "set", self._device, "down")

    def mend(self) -> None:
        self._other.ip("link", "set", self._device, "up")


class Network:
    """Hosts and cables, until it is closed."""

    def __init__(self) -> None:
        self._hosts = ExitStack()
        self._cables = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._hosts.close()

    def add_host(self, name: str) -> Host:
        host = Host(name)
        ip("netns", "add", host.namespace)
        self._hosts.callback(ip, "netns", "del", host.namespace)
        host.ip("link", "set", "lo", "up")
        return host

    def join(self, one: Host, other: Host) -> Cable:
        self._cables += 1
        return Cable(self._cables, one, other)


class ValkeyOn(Valkey):
    """A Valkey on a host, reached at `address`."""

    def __init__(self, host: Host, address: str) -> None:
        super().__init__()
        self._host, self.address = host, address

    def _command(self) -> list[str]:
        return [*self._host.enter, *super()._command(), "--bind", "0.0.0.0", "--protected-mode", "no"]

    def _answers(self) -> bool:
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX) as connection:  # it is in no namespace
            connection.connect(str(self.socket_path))
            connection.sendall(b"PING\r\n")
            return connection.recv(64).startswith(b"+PONG")
        return False


class PostgresOn(Postgres):
    """A PostgreSQL on a host."""

    def __init__(self, host: Host, *options: str) -> None:
        self._host = host
        super().__init__(*options, "-c", "listen_addresses=*")
        with (self.data_dir / "pg_hba.conf").open("a") as rules:
            rules.write("host all all 10.213.0.0/16 trust\n")

    def _command(self) -> list[str]:
        as_nobody = ["--setuid", str(NOBODY), "--setgid", str(NOBODY)]
        return ["nsenter", f"--net=/run/netns/{self._host.namespace}", *as_nobody, "--", *super()._command()]

    def _identity(self) -> dict[str, object]:
        return {} if self._has_cluster else super()._identity()

    @property
    def _has_cluster(self) -> bool:
        return (self.data_dir / "PG_VERSION").exists()

    def _answers(self) -> bool:
        probe = [*self._host.enter, str(self.bin_dir / "pg_isready"), "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(probe, check=False).returncode == 0


class ProcessOn(Process):
    """A `frontrow …` process on a host."""

    def __init__(self, host: Host, *args: object, **more: object) -> None:
        self._host = host
        super().__init__(*args, **more)  # type: ignore[arg-type]

    def start(self) -> None:
        if self._command[0] != "nsenter":
            self._command = [*self._host.enter, *self._command]
        super().start()
