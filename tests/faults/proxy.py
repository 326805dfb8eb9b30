"""A TCP proxy for tests: passes bytes to a target that can be changed, late, or not at all, like a broken network."""

import asyncio
import contextlib
import socket
import struct
from typing import Self


class Proxy:
    """Listens on a port of its own (`port`); `blackhole()` swallows everything from now on, silently."""

    def __init__(self, target_port: int) -> None:
        self.target_port = target_port
        self.swallowing = False
        self.late_s = 0.0  # each piece, in both directions
        self.keeping_open = False  # whoever hangs up is not noticed at the other end
        self.port = 0
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._writers: set[asyncio.StreamWriter] = set()
        self._opened: list[asyncio.StreamWriter] = []
        self._silent: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._opened:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in self._opened), return_exceptions=True)

    def refuse(self) -> None:
        """Refuse new connections and cut those that are open, as a host without the service does."""
        assert self._server is not None
        self._server.close()
        self.reset()

    async def accept_again(self) -> None:
        """End `refuse`, at the same port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)

    def keep_silent(self) -> None:
        """Connections that are open stay open and pass nothing on any more; new ones do."""
        self._silent |= self._writers
        self._writers.clear()

    def blackhole(self) -> None:
        self.swallowing = True

    def cut(self) -> None:
        """Close every connection, as a failover does."""
        for writer in list(self._writers):
            writer.close()

    def reset(self) -> None:
        """Reset every connection (RST), as a firewall or a dying server does."""
        for writer in list(self._writers):
            sock = writer.get_extra_info("socket")
            if sock is not None:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving = asyncio.current_task()
        assert serving is not None
        self._tasks.add(serving)
        serving.add_done_callback(self._tasks.discard)
        self._opened.append(writer)
        try:
            up_reader, up_writer = await asyncio.open_connection("127.0.0.1", self.target_port)
        except OSError:
            writer.close()
            return
        self._writers |= {writer, up_writer}
        self._opened.append(up_writer)
        for source, sink in ((reader, up_writer), (up_reader, writer)):
            task = asyncio.ensure_future(self._pump(source, sink))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _pump(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await source.read(65536):
                if self.late_s:
                    await asyncio.sleep(self.late_s)
                if not self.swallowing and sink not in self._silent:
                    sink.write(chunk)
                    await sink.drain()
        if not self.keeping_open:
            self._writers.discard(sink)
            sink.close()


def at_port(url: str, *ports: int) -> str:
    """The same database at these ports of this machine."""
    head, _, tail = url.rpartition("@")
    return f"{head}@{','.join(f'127.0.0.1:{port}' for port in ports)}/{tail.partition('/')[2]}"
