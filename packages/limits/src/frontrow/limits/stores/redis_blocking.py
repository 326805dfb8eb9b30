"""Blocking connections to Redis: a socket that was taken over from redis-py, or a client that calls by itself.

`blocking_calls` says how threads share them, `redis_source` what taking over a socket saves.
"""

import os
import socket
import struct
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import suppress
from ssl import SSLWantReadError
from typing import Any, Protocol

import hiredis

from frontrow.core.redis_url import disconnect_sync
from frontrow.limits.stores.blocking_calls import Asker, ConnectionLost, wait_running_time
from frontrow.limits.stores.protocol import StoreRequest, StoreResult
from frontrow.limits.stores.redis_source import RedisSource

READ_BYTES = 65_536
CLUSTER_THREADS = 8
NOTHING = object()  # the reader has no whole reply yet


class RedisAsker(Asker, Protocol):
    """A store that writes its requests as commands and reads the replies."""

    def command(self, requests: Sequence[StoreRequest], *, with_source: bool) -> tuple[Any, ...]:
        """The words of a call that decides `requests`. With its source, if the server has forgotten the script."""

    def frame(self, requests: Sequence[StoreRequest], *, with_source: bool) -> bytes:
        """The same call as it goes over the wire."""

    def read_reply(self, requests: Sequence[StoreRequest], reply: Any) -> Sequence[StoreResult]: ...

    def split(self, requests: Sequence[StoreRequest]) -> Sequence[Sequence[int]]:
        """The positions of requests that one command can decide, command by command."""


class Connection:
    """One connected socket. The kernel bounds its waits where it can, which spares Python a system call each time."""

    takes_frames = True
    survives_failure = False

    def __init__(self, sock: Any) -> None:
        self._socket = sock
        self._kernel_waits = type(sock) is socket.socket and os.name == "posix"
        if self._kernel_waits:
            sock.settimeout(None)
        self._reader: Any = hiredis.Reader(notEnoughData=NOTHING)
        self._buffer = bytearray(READ_BYTES)
        self._wait_s = 0.0
        self._worked = False

    def call(self, left_s: float, frame: bytes) -> Any:
        """The reply to one command within `left_s`. An error reply is returned as `hiredis.ReplyError`."""
        if not 0 <= self._wait_s - left_s < 0.001:
            self._limit_wait(left_s)
        answered = False
        try:
            self._socket.sendall(frame)
            while True:
                count = self._receive()
                if not count:
                    raise ConnectionLost("the server closed the connection", unanswered=self._worked and not answered)
                answered = True
                self._reader.feed(self._buffer, 0, count)
                reply = self._reader.gets()
                while isinstance(reply, hiredis.PushNotification):
                    reply = self._reader.gets()
                if reply is not NOTHING:
                    self._worked = True
                    return reply
        except (TimeoutError, BlockingIOError, SSLWantReadError):
            raise ConnectionLost("no answer within the deadline", late=True) from None
        except OSError as error:
            raise ConnectionLost(f"{type(error).__name__}: {error}", unanswered=self._worked and not answered) from None

    def _receive(self) -> int:
        """Read what is there, or wait for it. What came while this thread waited to run is read as well."""
        try:
            return self._socket.recv_into(self._buffer)  # type: ignore[no-any-return]
        except (TimeoutError, BlockingIOError):
            if self._kernel_waits:
                return self._socket.recv_into(self._buffer, 0, socket.MSG_DONTWAIT)  # type: ignore[no-any-return]
            self._socket.settimeout(0.0)
            try:
                return self._socket.recv_into(self._buffer)  # type: ignore[no-any-return]
            finally:
                self._socket.settimeout(self._wait_s)

    def _limit_wait(self, left_s: float) -> None:
        self._wait_s = left_s = max(0.001, left_s)
        if self._kernel_waits:
            time_value = struct.pack("ll", int(left_s), int(left_s % 1 * 1_000_000))
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, time_value)
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, time_value)
        else:
            self._socket.settimeout(left_s)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()

    close_in_child = close


class ClientConnection:
    """A client that calls by itself, for a Cluster. Threads of its own call it, so that nobody waits too long."""

    takes_frames = False
    survives_failure = True  # it keeps its nodes' connections in order by itself

    def __init__(self, client: Any, owned: bool) -> None:
        self._client = client
        self._owned = owned
        self._threads = ThreadPoolExecutor(CLUSTER_THREADS, "frontrow-limits")

    def call(self, left_s: float, words: tuple[Any, ...]) -> Any:
        """The reply to one command within `left_s`, as `Connection.call` returns it."""
        return self.call_all(left_s, (words,))[0]

    def call_all(self, left_s: float, commands: Sequence[tuple[Any, ...]]) -> list[Any]:
        """The replies to commands that run at the same time."""
        calls = [self._threads.submit(self._client.execute_command, *words, NEVER_DECODE=True) for words in commands]
        try:
            if not wait_running_time(lambda slice_s: not wait(calls, slice_s).not_done, left_s):
                raise ConnectionLost("no answer within the deadline", late=True)
            return [self._reply(call) for call in calls]
        finally:
            for call in calls:
                call.cancel()

    def _reply(self, call: Future[Any]) -> Any:
        try:
            return call.result(0.0)
        except Exception as error:
            if type(error).__name__ == "NoScriptError":
                return hiredis.ReplyError(f"NOSCRIPT {error}")
            raise ConnectionLost(f"{type(error).__name__}: {error}") from None

    def close(self) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)
        if self._owned:
            disconnect_sync(self._client)

    def close_in_child(self) -> None:
        """Nothing to close: redis-py's clients notice a fork by themselves."""


def open_connection(source: RedisSource) -> Connection | ClientConnection:
    """A connection for blocking calls. May take as long as the source's timeouts."""
    sock, client = source.open_blocking()
    return Connection(sock) if sock is not None else ClientConnection(client, source.owns(client))
