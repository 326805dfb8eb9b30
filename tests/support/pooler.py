"""A pooler of PostgreSQL transactions for tests, and PgBouncer itself where it is found.

`TransactionPooler` does what PgBouncer does in transaction mode, at its worst: every transaction gets another
connection of the server than the one before, settings that a client brings along are refused, and nothing is reset in
between. So a client that keeps anything in a connection fails at once. PgBouncer is not in any wheel; `make setup`
unpacks Debian's where there is `apt-get`.
"""

import asyncio
import os
import shutil
import socket
import struct
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit

from tests.support.servers import Server

TAKEN = {b"user", b"database", b"application_name", b"client_encoding", b"datestyle", b"timezone"}
SSL_REQUEST, CANCEL_REQUEST, STARTUP = 80877103, 80877102, 196608
CONNECTIONS = 3  # to the server, per database
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def pgbouncer_programs() -> list[str]:
    """Where PgBouncer is: on the path, or unpacked by `make setup`."""
    unpacked = Path(sys.prefix) / "pgbouncer" / "usr" / "sbin" / "pgbouncer"
    found = shutil.which("pgbouncer") or shutil.which("/usr/sbin/pgbouncer") or shutil.which(str(unpacked))
    return [found] if found else []


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


async def read_message(reader: asyncio.StreamReader) -> bytes:
    head = await reader.readexactly(5)
    return head + await reader.readexactly(struct.unpack("!I", head[1:])[0] - 4)


class TransactionPooler:
    """In a thread of its own, before the server of a URL."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._server, self._user = (parts.hostname or "", parts.port or 5432), parts.username or ""
        self._database = parts.path[1:]
        self._idle: asyncio.Queue[Streams] = asyncio.Queue()
        self._made = False
        self.transactions = 0
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result(10)
        self.port = listening.sockets[0].getsockname()[1]
        self._listening = listening
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        return f"postgresql://{self._user}@127.0.0.1:{self.port}/{self._database}"

    async def _listen(self) -> asyncio.Server:
        return await asyncio.start_server(self._serve, "127.0.0.1", 0)

    async def _close(self) -> None:
        self._listening.close()
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        while not self._idle.empty():
            self._idle.get_nowait()[1].close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if await self._greet(reader, writer):
                reading = asyncio.ensure_future(read_message(reader))
                while (await reading)[:1] != b"X":  # until the client leaves
                    reading = await self._run_transaction(reading, reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            writer.close()

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while True:  # at most one question about TLS comes before
            size, code = struct.unpack("!II", await reader.readexactly(8))
            body = await reader.readexactly(size - 8)
            if code != SSL_REQUEST:
                break
            writer.write(b"N")
        if code != STARTUP:
            return False
        names = body.rstrip(b"\0").split(b"\0")[::2]
        refused = [name for name in names if name.lower() not in TAKEN]
        if refused:
            told = b"SFATAL\0C08P01\0Munsupported startup parameter: " + refused[0] + b"\0\0"
            writer.write(message(b"E", told))
            await writer.drain()
            return False
        status = [(b"server_version", b"18.0"), (b"client_encoding", b"UTF8"), (b"standard_conforming_strings", b"on")]
        writer.write(message(b"R", struct.pack("!I", 0)))
        for name, value in status:
            writer.write(message(b"S", name + b"\0" + value + b"\0"))
        writer.write(message(b"K", struct.pack("!II", 7, 7)) + message(b"Z", b"I"))
        return True

    async def _run_transaction(
        self, reading: "asyncio.Future[bytes]", reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> "asyncio.Future[bytes]":
        """Pass messages on over one connection of the server until it is outside a transaction. Returns the reading of
        the client's next message."""
        server = await self._take()
        asked = [0]  # questions that the server must still answer
        answering = asyncio.ensure_future(self._pass_answers(server[0], writer, asked))
        try:
            while True:  # ends with the transaction
                done, _ = await asyncio.wait((reading, answering), return_when=asyncio.FIRST_COMPLETED)
                if answering in done:
                    answering.result()
                    break
                message_read = reading.result()
                asked[0] += message_read[:1] in (b"Q", b"S")
                server[1].write(message_read)
                reading = asyncio.ensure_future(read_message(reader))
        except BaseException:
            answering.cancel()
            server[1].close()
            self._give(await self._connect())
            raise
        self.transactions += 1
        self._give(server)
        return reading

    async def _pass_answers(
        self, answers: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: list[int]
    ) -> None:
        while True:  # until the server has answered everything and is outside a transaction
            answer = await read_message(answers)
            writer.write(answer)
            if answer[:1] == b"Z":
                asked[0] -= 1
                await writer.drain()
                if not asked[0] and answer[5:6] == b"I":
                    return

    async def _take(self) -> Streams:
        """The connection that has rested longest, so the next transaction gets another one."""
        if not self._made:
            self._made = True
            for _ in range(CONNECTIONS):
                self._give(await self._connect())
        return await self._idle.get()

    def _give(self, server: Streams) -> None:
        self._idle.put_nowait(server)

    async def _connect(self) -> Streams:
        reader, writer = await asyncio.open_connection(*self._server)
        named = f"user\0{self._user}\0database\0{self._database}\0\0".encode()
        writer.write(struct.pack("!II", len(named) + 8, STARTUP) + named)
        while (await read_message(reader))[:1] != b"Z":
            pass
        return reader, writer


class PgBouncer(Server):
    """The real one in transaction mode, before the server of a URL."""

    name = "pgbouncer"

    def __init__(self, url: str, program: str) -> None:
        super().__init__()
        self._program, self._parts = program, urlsplit(url)
        self.folder.chmod(0o777)

    @property
    def url(self) -> str:
        return f"postgresql://{self._parts.username}@127.0.0.1:{self.port}{self._parts.path}"

    def _identity(self) -> dict[str, object]:
        return {"user": 65534, "group": 65534, "extra_groups": []} if os.geteuid() == 0 else {}

    def _command(self) -> list[str]:
        database, user = self._parts.path[1:], self._parts.username
        (self.folder / "users").write_text(f'"{user}" ""\n')
        (self.folder / "pgbouncer.ini").write_text(
            f"[databases]\n{database} = host=127.0.0.1 port={self._parts.port} dbname={database}\n[pgbouncer]\n"
            f"listen_addr = 127.0.0.1\nlisten_port = {self.port}\nauth_type = trust\nauth_file = {self.folder}/users\n"
            f"pool_mode = transaction\ndefault_pool_size = {CONNECTIONS}\nserver_round_robin = 1\nunix_socket_dir =\n"
        )
        libraries = ":".join(map(str, (Path(self._program).parents[1] / "lib").glob("*-linux-gnu")))
        return ["env", f"LD_LIBRARY_PATH={libraries}", self._program, str(self.folder / "pgbouncer.ini")]

    def _answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.port), 1):
                return True
        except OSError:
            return False
