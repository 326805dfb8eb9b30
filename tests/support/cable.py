"""A network cable between a browser and a server, which a test can cut.

A browser's offline mode does not bind a service worker that starts again at a reload. A cut cable binds everybody.
"""

import contextlib
import socket
from typing import Self

from tests.support.listening import ListeningThreads, pump


class Cable:
    """`with Cable(port) as cable:` listens at `cable.url` and forwards to this port, unless it is cut."""

    def __init__(self, target: int) -> None:
        self._target, self._is_cut = target, False
        self._ends: list[socket.socket] = []
        self._listening = ListeningThreads(self._forward)
        self.url = f"http://127.0.0.1:{self._listening.port}"

    def __enter__(self) -> Self:
        self._listening.open()
        return self

    def __exit__(self, *gone: object) -> None:
        self._listening.close()

    def cut(self) -> None:
        """End all connections, and refuse new ones."""
        self._is_cut = True
        for end in self._ends:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self._is_cut = False

    def _forward(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            server = self._listening.keep(socket.create_connection(("127.0.0.1", self._target)))
            self._ends += [client, server]
            if self._is_cut:  # looked at after the ends are known, so that none slips through
                self.cut()
                return
            self._listening.start(pump, server, client)
            pump(client, server)
