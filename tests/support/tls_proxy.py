"""A server's port by TLS, for servers built without it. Plain connections to the same port pass through as they are."""

import contextlib
import datetime
import ipaddress
import socket
import ssl
from pathlib import Path
from types import TracebackType
from typing import Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from tests.support.listening import ListeningThreads, pump

TLS_HANDSHAKE = 0x16  # the first byte of a TLS connection; no Redis command starts with it


class TlsProxy:
    """Listens on 127.0.0.1, with the certificate of `folder`, and forwards to the port `target`."""

    def __init__(self, folder: Path, target: int = 0, port: int = 0) -> None:
        self.target = target
        self.tls_connections = 0
        self.certificate = folder / "tls.crt"
        if not self.certificate.exists():
            _write_certificate(self.certificate)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(self.certificate, self.certificate.with_suffix(".key"))
        self._listening = ListeningThreads(self._forward, port)
        self.port = self._listening.port

    def __enter__(self) -> Self:
        self._listening.open()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._listening.close()

    def _forward(self, client: socket.socket) -> None:
        with contextlib.suppress(OSError):
            first = client.recv(1, socket.MSG_PEEK)
            if first and first[0] == TLS_HANDSHAKE:
                client = self._listening.keep(self._context.wrap_socket(client, server_side=True))
                self.tls_connections += 1
            server = self._listening.keep(socket.create_connection(("127.0.0.1", self.target)))
            self._listening.start(pump, server, client)
            pump(client, server)


def _write_certificate(path: Path) -> None:
    """A certificate for 127.0.0.1 that signs itself, and its key beside it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.IPAddress(ipaddress.ip_address("127.0.0.1"))
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([address]), critical=False)
        .sign(key, hashes.SHA256())
    )
    path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    plain = serialization.NoEncryption()
    secret = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, plain)
    path.with_suffix(".key").write_bytes(secret)
