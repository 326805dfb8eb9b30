"""A front for librdkafka's built-in test broker, which speaks neither TLS nor SASL: it does both, the broker the rest.

It is a step of the Kafka protocol and no broker. It terminates TLS, answers SaslHandshake and SaslAuthenticate (PLAIN,
SCRAM-SHA-256, SCRAM-SHA-512) by the protocol's and RFC 5802's rules, lists both in ApiVersions, and lets nothing else
through before. In answers the broker's address becomes its own. So our client meets real handshakes and real refusals,
but not Apache Kafka's code. Permissions (ACLs) of topics are not part of it.
"""

import base64
import contextlib
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from collections.abc import Generator
from types import TracebackType
from typing import Final, Self

from tests.support.listening import ListeningThreads

PRODUCE, SASL_HANDSHAKE, API_VERSIONS, SASL_AUTHENTICATE = 0, 17, 18, 36
UNSUPPORTED_MECHANISM, AUTHENTICATION_FAILED = 33, 58
Steps = Generator[tuple[bytes | None, bool], bytes, None]  # what to say (None: refused), and whether that is all
ITERATIONS: Final = 4096
HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-512": "sha512"}


class KafkaFront:
    """Listens on 127.0.0.1 before the broker at `target`. `user` and `password` are the only ones it knows."""

    def __init__(
        self, target: int, *, certificate: str = "", user: str = "", password: str = "", mechanism: str = ""
    ) -> None:
        self._target, self._user, self._password, self._mechanism = target, user, password, mechanism
        self._tls: ssl.SSLContext | None = None
        if certificate:
            self._tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self._tls.load_cert_chain(certificate, certificate.replace(".crt", ".key"))
        self._listening = ListeningThreads(self._serve)
        self.port = self._listening.port
        self.passed = 0  # connections that may talk to the broker
        self.refused = 0
        self.answers_to_lose = (
            0  # of the next requests to produce: the broker has stored it, and the client never hears
        )
        self.produced: list[bytes] = []  # these requests, without their numbers
        self._lost: set[bytes] = set()

    def __enter__(self) -> Self:
        self._listening.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._listening.close()

    def _serve(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError, EOFError):
            if self._tls is not None:
                client = self._listening.keep(self._tls.wrap_socket(client, server_side=True))
            broker = self._listening.keep(socket.create_connection(("127.0.0.1", self._target)))
            if not self._user or self._authenticate(client, broker):
                self.passed += 1
                self._listening.start(self._pump_back, broker, client)
                while True:
                    request = _frame(client)
                    if struct.unpack_from(">h", request)[0] == PRODUCE:
                        self.produced.append(request[8:])
                        self._lost.update([request[4:8]] if self.answers_to_lose else [])
                        self.answers_to_lose = max(0, self.answers_to_lose - 1)
                    _send(broker, request)
            self.refused += 1
        _end(client)

    def _pump_back(self, broker: socket.socket, client: socket.socket) -> None:
        """Answers of the broker, with our address for its own: both have the same length."""
        ours, its = (b"127.0.0.1" + struct.pack(">i", port) for port in (self.port, self._target))
        with contextlib.suppress(OSError, EOFError):
            while True:
                answer = _frame(broker)
                if answer[:4] in self._lost:
                    self._lost.discard(answer[:4])
                    break
                _send(client, answer.replace(its, ours))
        for each in (broker, client):
            _end(each)

    def _authenticate(self, client: socket.socket, broker: socket.socket) -> bool:
        """Answer until the client has proven itself. False when it could not."""
        steps = _plain(self._user, self._password)
        if self._mechanism in HASHES:
            steps = _scram(HASHES[self._mechanism], self._user, self._password)
        while True:
            request = _frame(client)
            kind, version, number = struct.unpack_from(">hhi", request)
            body = request[10 + max(0, struct.unpack_from(">h", request, 8)[0]) :]
            if kind == API_VERSIONS:
                _send(broker, request)
                _send(client, _with_sasl(_frame(broker), version))
            elif kind == SASL_HANDSHAKE:
                fits = body[2:].decode() == self._mechanism
                name = self._mechanism.encode()
                refusal = 0 if fits else UNSUPPORTED_MECHANISM
                _send(client, struct.pack(">ihih", number, refusal, 1, len(name)) + name)
                if not fits:
                    return False
                next(steps)
            elif kind == SASL_AUTHENTICATE:
                said, is_done = steps.send(body[4:])
                if said is None:
                    told = b"Authentication failed during authentication due to invalid credentials"
                    _send(client, struct.pack(">ihh", number, AUTHENTICATION_FAILED, len(told)) + told + bytes(12))
                    return False
                _send(client, struct.pack(">ihhi", number, 0, -1, len(said)) + said + bytes(8))
                if is_done:
                    return True
            else:
                return False  # nothing else before that


def _plain(user: str, password: str) -> Steps:
    given = yield None, False
    yield (b"" if given == f"\0{user}\0{password}".encode() else None), True


def _scram(kind: str, user: str, password: str) -> Steps:
    """RFC 5802, the server's side."""
    first = yield None, False
    client_first = first.decode().removeprefix("n,,")
    fields = dict(part.split("=", 1) for part in client_first.split(","))
    salt, nonce = secrets.token_bytes(16), fields["r"] + secrets.token_urlsafe(12)
    server_first = f"r={nonce},s={base64.b64encode(salt).decode()},i={ITERATIONS}"
    final = (yield server_first.encode(), False).decode()
    without_proof, _, proof = final.rpartition(",p=")
    salted = hashlib.pbkdf2_hmac(kind, password.encode(), salt, ITERATIONS)
    signed = f"{client_first},{server_first},{without_proof}".encode()
    stored = hashlib.new(kind, hmac.digest(salted, b"Client Key", kind)).digest()
    key = bytes(a ^ b for a, b in zip(base64.b64decode(proof), hmac.digest(stored, signed, kind), strict=True))
    right = hashlib.new(kind, key).digest() == stored and fields["n"] == user and f"r={nonce}" in without_proof
    shown = b"v=" + base64.b64encode(hmac.digest(hmac.digest(salted, b"Server Key", kind), signed, kind))
    yield (shown if right else None), True


def _with_sasl(answer: bytes, version: int) -> bytes:
    """An answer to ApiVersions that lists the two requests of SASL as well."""
    added = [(SASL_HANDSHAKE, 0, 1), (SASL_AUTHENTICATE, 0, 1)]
    if version >= 3:  # compact: the number of entries plus one in one byte, tags after each
        entries = b"".join(struct.pack(">hhhB", *one, 0) for one in added)
        assert answer[6] + len(added) < 0x80
        return answer[:6] + bytes([answer[6] + len(added)]) + entries + answer[7:]
    count = struct.unpack_from(">i", answer, 6)[0] + len(added)
    return answer[:6] + struct.pack(">i", count) + b"".join(struct.pack(">hhh", *one) for one in added) + answer[10:]


def _frame(source: socket.socket) -> bytes:
    return _read(source, struct.unpack(">i", _read(source, 4))[0])


def _read(source: socket.socket, size: int) -> bytes:
    parts = b""
    while len(parts) < size:
        part = source.recv(size - len(parts))
        if not part:
            raise EOFError
        parts += part
    return parts


def _send(sink: socket.socket, frame: bytes) -> None:
    sink.sendall(struct.pack(">i", len(frame)) + frame)


def _end(client: socket.socket) -> None:
    with contextlib.suppress(OSError):
        client.shutdown(socket.SHUT_RDWR)
