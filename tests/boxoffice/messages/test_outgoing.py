"""Webhook addresses (B15): private networks cannot be reached, whatever the URL, the DNS or the receiver says."""

import asyncio
import ipaddress
import ssl
import threading
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from frontrow.boxoffice.messages.safe_http import (
    MAX_LOOKUPS,
    NameResolver,
    SafeHttpClient,
    UnsafeAddress,
    check_address,
    parse_url,
)
from frontrow.core.errors import Unavailable
from tests.boxoffice.messages.receivers import HttpReceiver, http_receiver
from tests.support.eventually import eventually

DISGUISES = [
    "http://example.org/",  # not https
    "https://user@example.org/",
    "https://user:pw@example.org/",
    "https://127.1/",
    "https://127.0.1/",
    "https://2130706433/",
    "https://0x7f000001/",
    "https://0x7f.0.0.1/",
    "https://0177.0.0.1/",
    "https://017700000001/",
    "https://127.0.0.1.0x7f/",
    "https://１２７.0.0.1/",
    "https://exämple.org/",
    "https://example.org\\@127.0.0.1/",
    "https://example.org /",
    "https://exa\tmple.org/",
    "https:///path",
    "https://[::1/",
    "https://example.org:99999/",
    "file:///etc/passwd",
    "gopher://example.org/",
    "https://" + "a" * 3000 + ".org/",
    "https://a_b.example/",
]
PRIVATE = [
    "127.0.0.1",
    "127.8.8.8",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "203.0.113.9",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:a00:1",
    "::127.0.0.1",
    "64:ff9b::7f00:1",
    "64:ff9b:1::1",
    "2002:7f00:1::",
    "2002:808:808::",
    "2001:0:7f00:1::",
    "fe80::1",
    "fe80::1%eth0",
    "fc00::1",
    "fd12::1",
    "ff02::1",
    "2001:db8::1",
    "100::1",
    "not an address",
    "",
]
PUBLIC = ["8.8.8.8", "1.1.1.1", "93.184.216.34", "2606:4700:4700::1111"]


async def nothing() -> AsyncIterator[bytes]:
    yield b""


@pytest.mark.parametrize("url", DISGUISES)
def test_a_url_in_disguise_is_refused(url: str) -> None:
    with pytest.raises(UnsafeAddress):
        parse_url(url)


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_public_is_refused(address: str) -> None:
    with pytest.raises(UnsafeAddress):
        check_address(address)


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_fine(address: str) -> None:
    assert str(check_address(address)) == address


@pytest.mark.parametrize(
    "url", ["https://127.0.0.1/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://10.0.0.1/"]
)
async def test_a_literal_private_address_is_never_called(url: str) -> None:
    calls: list[httpx.Request] = []
    transport = httpx.MockTransport(lambda request: calls.append(request) or httpx.Response(200))
    outgoing = SafeHttpClient(transport=transport)
    with pytest.raises(UnsafeAddress):
        await outgoing.post(url, b"{}", {})
    assert calls == []
    await outgoing.aclose()


async def test_a_name_is_resolved_once_and_the_connection_goes_to_that_very_address() -> None:
    """DNS rebinding: the second answer would be private, but nobody asks a second time."""
    asked: list[str] = []
    requests: list[httpx.Request] = []

    async def resolver(host: str, port: int) -> list[str]:
        asked.append(host)
        return ["8.8.8.8"] if len(asked) == 1 else ["127.0.0.1"]

    def answer(request: httpx.Request) -> httpx.Response:
        requests.append(request)
        return httpx.Response(200, content=nothing())

    outgoing = SafeHttpClient(resolver=resolver, transport=httpx.MockTransport(answer))
    assert await outgoing.post("https://hooks.example.org/x?y=1", b"{}", {"A": "b"}) == 200
    assert asked == ["hooks.example.org"]
    assert (requests[0].url.host, requests[0].url.raw_path) == ("8.8.8.8", b"/x?y=1")
    assert requests[0].headers["host"] == "hooks.example.org"
    assert requests[0].extensions["sni_hostname"] == "hooks.example.org"
    with pytest.raises(UnsafeAddress):
        await outgoing.post("https://hooks.example.org/x", b"{}", {})
    assert len(requests) == 1
    await outgoing.aclose()


async def test_one_private_address_among_public_ones_is_enough_to_refuse() -> None:
    async def resolver(host: str, port: int) -> list[str]:
        return ["8.8.8.8", "::ffff:169.254.169.254"]

    outgoing = SafeHttpClient(resolver=resolver, transport=httpx.MockTransport(lambda request: httpx.Response(200)))
    with pytest.raises(UnsafeAddress):
        await outgoing.post("https://hooks.example.org/", b"{}", {})
    await outgoing.aclose()


async def test_a_redirect_is_not_followed() -> None:
    async with http_receiver() as receiver:
        receiver.answer = lambda headers, body: f"302 Found\r\nLocation: http://127.0.0.1:{receiver.port}/inside"
        outgoing = SafeHttpClient(allow_http=True, trusted=frozenset({"127.0.0.1"}))
        assert await outgoing.post(f"http://127.0.0.1:{receiver.port}/hook", b"{}", {}) == 302
        assert [call[0] for call in receiver.calls] == ["POST /hook HTTP/1.1"]
        await outgoing.aclose()


async def test_a_receiver_that_hangs_or_is_not_there_is_given_up_in_time() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    outgoing = SafeHttpClient(allow_http=True, trusted=frozenset({"127.0.0.1"}), timeout_s=0.2)
    with pytest.raises(Unavailable):
        await outgoing.post(f"http://127.0.0.1:{port}/", b"{}", {})
    server.close()
    await server.wait_closed()
    with pytest.raises(Unavailable):
        await outgoing.post(f"http://127.0.0.1:{port}/", b"{}", {})

    async def nowhere(host: str, port: int) -> list[str]:
        raise OSError("no such name")

    lost = SafeHttpClient(resolver=nowhere)
    with pytest.raises(Unavailable):
        await lost.post("https://nobody.example/", b"{}", {})
    await asyncio.gather(outgoing.aclose(), lost.aclose())


def certificate(name: str, folder: Path) -> tuple[Path, Path]:
    """A self-signed certificate for a name, and its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / "cert.pem").write_bytes(made.public_bytes(pem))
    (folder / "key.pem").write_bytes(secret)
    return folder / "cert.pem", folder / "key.pem"


async def test_the_certificate_is_checked_against_the_name_while_the_address_is_pinned(tmp_path: Path) -> None:
    cert, key = certificate("hooks.example.org", tmp_path)
    serving = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    serving.load_cert_chain(cert, key)
    trusting = ssl.create_default_context(cafile=str(cert))
    receiver = HttpReceiver()
    server = await asyncio.start_server(receiver.handle, "127.0.0.1", 0, ssl=serving)
    port = server.sockets[0].getsockname()[1]

    async def resolver(host: str, port: int) -> list[str]:
        return ["127.0.0.1"]

    outgoing = SafeHttpClient(resolver=resolver, trusted=frozenset({"127.0.0.1"}), tls=trusting)
    strict = SafeHttpClient(resolver=resolver, trusted=frozenset({"127.0.0.1"}))
    assert await outgoing.post(f"https://hooks.example.org:{port}/x", b"{}", {}) == 200
    assert receiver.calls[0][1]["host"] == f"hooks.example.org:{port}"
    for caller, host in ((outgoing, "other.example.org"), (strict, "hooks.example.org")):
        with pytest.raises(Unavailable):
            await caller.post(f"https://{host}:{port}/x", b"{}", {})
    assert len(receiver.calls) == 1
    server.close()
    await asyncio.gather(outgoing.aclose(), strict.aclose(), server.wait_closed())


# Every block of IANA's two registries of special-purpose addresses, and of multicast, whatever it says about them.
REGISTRIES = [
    "0.0.0.0/8",
    "0.0.0.0/32",
    "10.0.0.0/8",
    "100.64.0.0/10",
    "127.0.0.0/8",
    "169.254.0.0/16",
    "172.16.0.0/12",
    "192.0.0.0/24",
    "192.0.0.0/29",
    "192.0.0.8/32",
    "192.0.0.9/32",
    "192.0.0.10/32",
    "192.0.0.170/31",
    "192.0.2.0/24",
    "192.31.196.0/24",
    "192.52.193.0/24",
    "192.88.99.0/24",
    "192.88.99.2/32",
    "192.168.0.0/16",
    "192.175.48.0/24",
    "198.18.0.0/15",
    "198.51.100.0/24",
    "203.0.113.0/24",
    "224.0.0.0/4",
    "240.0.0.0/4",
    "255.255.255.255/32",
    "::1/128",
    "::/128",
    "::ffff:0:0/96",
    "64:ff9b::/96",
    "64:ff9b:1::/48",
    "100::/64",
    "100:0:0:1::/64",
    "2001::/23",
    "2001::/32",
    "2001:1::1/128",
    "2001:1::2/128",
    "2001:1::3/128",
    "2001:2::/48",
    "2001:3::/32",
    "2001:4:112::/48",
    "2001:10::/28",
    "2001:20::/28",
    "2001:30::/28",
    "2001:db8::/32",
    "2002::/16",
    "2620:4f:8000::/48",
    "3fff::/20",
    "5f00::/16",
    "fc00::/7",
    "fe80::/10",
    "ff00::/8",
]
CLOUDS = ["192.0.0.192", "168.63.129.16", "169.254.169.254", "100.100.100.200", "fd00:ec2::254"]


@pytest.mark.parametrize("block", REGISTRIES)
def test_no_special_purpose_address_is_called(block: str) -> None:
    """First, middle and last address of each block, written plainly and inside the IPv6 forms that carry it."""
    network = ipaddress.ip_network(block)
    for place in (0, network.num_addresses // 2, network.num_addresses - 1):
        address = network[place]
        written = [str(address)]
        if isinstance(address, ipaddress.IPv4Address):
            high, low = int(address) >> 16, int(address) & 0xFFFF
            written += [f"::ffff:{address}", f"::{address}", f"64:ff9b::{address}", f"64:ff9b:1::{address}"]
            written += [f"2002:{high:x}:{low:x}::1", f"2001:0:{high:x}:{low:x}::1", f"2606:4700::5efe:{high:x}:{low:x}"]
        for text in written:
            with pytest.raises(UnsafeAddress):
                check_address(text)


@pytest.mark.parametrize("address", CLOUDS)
def test_no_service_of_a_cloud_for_its_own_machines_is_called(address: str) -> None:
    with pytest.raises(UnsafeAddress):
        check_address(address)


class SlowNames:
    """A name server that answers when the test says so, and counts who waits in which thread."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.answer = threading.Event()

    def __call__(self, host: str, port: int) -> list[str]:
        self.asked.append(host)
        if host.startswith("slow"):
            self.answer.wait(60)
        if host == "lost.example":
            raise OSError("no such name")
        return ["8.8.8.8"]


async def test_slow_names_take_no_thread_of_the_loop_and_only_so_many_of_their_own() -> None:
    names = SlowNames()
    resolver = NameResolver(names)
    try:
        waiting = [asyncio.create_task(resolver(f"slow{n}.example", 443)) for n in range(MAX_LOOKUPS)]
        again = [asyncio.create_task(resolver("slow0.example", 443)) for _ in range(5)]
        await eventually(lambda: len(names.asked), until=lambda asked: asked >= MAX_LOOKUPS)
        assert await asyncio.to_thread(lambda: "free") == "free", "the loop's threads work on"
        with pytest.raises(Unavailable, match="other names"):
            await resolver("one.more.example", 443)
        waiting[0].cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting[0]
        names.answer.set()
        assert await asyncio.gather(*waiting[1:], *again) == [["8.8.8.8"]] * (MAX_LOOKUPS - 1 + 5)
        assert len(names.asked) == MAX_LOOKUPS, "each name was asked for once"
        assert await resolver("one.more.example", 443) == ["8.8.8.8"]
        with pytest.raises(OSError, match="no such name"):
            await resolver("lost.example", 443)
        assert resolver._running == {}
    finally:
        names.answer.set()


async def test_a_client_resolves_with_its_own_threads() -> None:
    seen: list[str] = []

    def note(host: str, port: int) -> list[str]:
        seen.append(threading.current_thread().name)
        return ["127.0.0.1"]

    outgoing = SafeHttpClient(resolver=NameResolver(note))
    with pytest.raises(UnsafeAddress):
        await outgoing.check("https://hooks.example.org/")
    assert seen == ["resolve hooks.example.org"]
    assert isinstance(SafeHttpClient()._resolver, NameResolver)
    await outgoing.aclose()


async def test_the_demo_calls_a_receiver_on_this_machine() -> None:
    async with http_receiver() as receiver:
        demo, strict = SafeHttpClient(loopback=True), SafeHttpClient()
        for url in (f"http://127.0.0.1:{receiver.port}/hook", f"http://localhost:{receiver.port}/hook"):
            assert await demo.post(url, b"{}", {}) == 200
            with pytest.raises(UnsafeAddress):
                await strict.post(url, b"{}", {})
        for url in ("http://10.0.0.1/", "http://example.org/", "https://192.168.0.1/", "http://localhost.example/"):
            with pytest.raises(UnsafeAddress):
                demo.check_form(url)
        assert len(receiver.calls) == 2
        await asyncio.gather(demo.aclose(), strict.aclose())


async def test_the_next_address_of_a_name_is_tried_where_nobody_listens_at_the_first() -> None:
    """`localhost` is ::1 first on a machine without /etc/hosts, and few programs listen there."""

    async def both(host: str, port: int) -> list[str]:
        return ["::1", "127.0.0.1"]

    async with http_receiver() as receiver:
        demo = SafeHttpClient(resolver=both, loopback=True)
        assert await demo.post(f"http://localhost:{receiver.port}/hook", b"{}", {}) == 200
        assert len(receiver.calls) == 1
        await demo.aclose()


async def test_a_name_whose_look_up_broke_is_asked_for_again(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[list[str] | Exception] = [ValueError("rubbish"), ["8.8.8.8"]]

    def look_up(host: str, port: int) -> list[str]:
        result = found.pop(0)
        if isinstance(result, Exception):
            raise result
        return result

    def refuse(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    resolver = NameResolver(look_up)
    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuse)
        with pytest.raises(RuntimeError, match="new thread"):
            await resolver("hooks.example", 443)
    async with asyncio.timeout(10):
        with pytest.raises(ValueError, match="rubbish"):
            await resolver("hooks.example", 443)
        assert await resolver("hooks.example", 443) == ["8.8.8.8"]


async def test_a_receiver_sets_no_cookies_for_others_at_its_address() -> None:
    """Many receivers share the address of a provider. What one of them sets must not reach the next."""
    seen: list[str | None] = []

    def answer(request: httpx.Request) -> httpx.Response:
        seen.append(request.headers.get("cookie"))
        return httpx.Response(200, headers={"set-cookie": f"mine{len(seen)}=secret; Path=/"}, content=nothing())

    async def resolve(host: str, port: int) -> list[str]:
        return ["93.184.216.34"]

    outgoing = SafeHttpClient(resolver=resolve, transport=httpx.MockTransport(answer))
    for url in ("https://one.example/hook", "https://other.example/hook", "https://one.example/hook"):
        assert await outgoing.post(url, b"{}", {}) == 200
    assert seen == [None, None, None]
    await outgoing.aclose()
