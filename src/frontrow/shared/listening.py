"""Listening sockets and the addresses in settings that name them."""

import socket
from typing import Final

from frontrow.core.errors import ConfigError

BACKLOG: Final = 16_384


def read_address(text: str, setting: str, example: str) -> tuple[str, int]:
    """The host and the port of a setting. Port 0: any free one."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise ConfigError(f"{setting} is {text[:80]!r}; write a host and a port: {example}", param=setting)
    return host.removeprefix("[").removesuffix("]"), int(port)


def listen_on(host: str, port: int, setting: str) -> socket.socket:
    """A listening socket that worker processes may share. `setting` is blamed if it cannot be had."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        sock = socket.create_server((host, port), family=family, backlog=BACKLOG)
    except OSError as error:
        reason = error.strerror or str(error)
        raise ConfigError(f"{setting}: cannot listen on {host}:{port}: {reason}", param=setting) from error
    sock.set_inheritable(True)
    return sock
