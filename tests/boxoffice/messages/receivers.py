"""Receivers for tests: an HTTP server that answers as told, and a real SMTP server."""

import asyncio
import contextlib
import email
from collections.abc import AsyncIterator, Callable, Iterator
from email.message import EmailMessage
from email.policy import default
from typing import Any

from aiosmtpd.controller import Controller

from tests.support.servers import free_port


class HttpReceiver:
    """Takes POSTs; `answer(headers, body)` says which status (and headers) to give."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, dict[str, str], bytes]] = []
        self.answer: Callable[[dict[str, str], bytes], str] = lambda headers, body: "200 OK"
        self.port = 0

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
            headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in head[1:] if line)}
            body = await reader.readexactly(int(headers.get("content-length", "0")))
            self.calls.append((head[0], headers, body))
            status = self.answer(headers, body)
            writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def http_receiver() -> AsyncIterator[HttpReceiver]:
    receiver = HttpReceiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0)
    receiver.port = server.sockets[0].getsockname()[1]
    try:
        yield receiver
    finally:
        server.close()
        await server.wait_closed()


class Postbox:
    """What a real SMTP server received; `refuse` maps recipients to the answer they get, and the mail with the number
    `hangs_at` gets none."""

    def __init__(self) -> None:
        self.mails: list[EmailMessage] = []
        self.connections = 0
        self.refuse: dict[str, str] = {}
        self.hangs_at = 0
        self.port = 0

    async def handle_EHLO(self, server: Any, session: Any, envelope: Any, hostname: str, responses: Any) -> Any:
        session.host_name = hostname
        self.connections += 1
        return responses

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        if address in self.refuse:
            return self.refuse[address]
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        parsed = email.message_from_bytes(envelope.content, policy=default)
        assert isinstance(parsed, EmailMessage)
        self.mails.append(parsed)
        if len(self.mails) == self.hangs_at:
            await asyncio.Event().wait()
        return "250 OK"


@contextlib.contextmanager
def smtp_server() -> Iterator[Postbox]:
    box = Postbox()
    box.port = free_port()
    controller = Controller(box, hostname="127.0.0.1", port=box.port)
    controller.start()
    try:
        yield box
    finally:
        controller.stop()
