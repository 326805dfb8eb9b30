"""A listening port whose connections each have a thread, for proxies and fronts of the tests."""

import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Sock = TypeVar("Sock", bound=socket.socket)


class ListeningThreads:
    """Listens on 127.0.0.1 and calls `serve` with each connection, in a thread. `close` ends all of them."""

    def __init__(self, serve: Callable[[socket.socket], None], port: int = 0) -> None:
        self._serve = serve
        self._listener = socket.create_server(("127.0.0.1", port))
        self.port = int(self._listener.getsockname()[1])
        self._open = [self._listener]
        self._threads: list[threading.Thread] = []

    def open(self) -> None:
        self.start(self._accept)

    def close(self) -> None:
        for each in self._open:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)
            each.close()
        for thread in self._threads:
            thread.join(10)

    def start(self, work: Callable[..., None], *arguments: Any) -> None:
        """Do this in a thread that `close` waits for."""
        thread = threading.Thread(target=work, args=arguments)
        self._threads.append(thread)
        thread.start()

    def keep(self, sock: Sock) -> Sock:
        """This socket is closed by `close`, too."""
        self._open.append(sock)
        return sock

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.start(self._serve, self.keep(client))


def pump(source: socket.socket, sink: socket.socket) -> None:
    """Pass on what comes from one end to the other, until either hangs up."""
    with contextlib.suppress(OSError):
        while got := source.recv(65536):
            sink.sendall(got)
    with contextlib.suppress(OSError):
        sink.shutdown(socket.SHUT_RDWR)
