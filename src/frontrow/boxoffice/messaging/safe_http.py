"""An HTTP client for URLs from outside (webhooks, push). It calls only public addresses, so it is safe against SSRF.

The host is resolved, every address is checked, and the connection goes to the checked address itself. The name is used
only in the Host header and the TLS handshake, so a later DNS change does not matter. Redirects are not followed,
proxies from the environment are not used, connections are not shared between receivers, and time and response size are
bounded.
"""

import asyncio
import functools
import ipaddress
import re
import socket
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

import msgspec

from frontrow.core.errors import Refused, Unavailable

if TYPE_CHECKING:
    import httpx

TIMEOUT_S: Final = 10.0
MAX_ANSWER_BYTES: Final = 16_384
MAX_URL_CHARS: Final = 2_048
MAX_CONNECTIONS: Final = 200
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\.?", re.ASCII)
_NUMBERISH: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.ASCII)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]


class UnsafeAddress(Refused):
    """This URL leads, or could lead, into a private network."""

    code = "unsafe_address"
    http_status = 422


class CheckedUrl(msgspec.Struct, frozen=True):
    """The parts of a URL whose form was checked. Resolving `host` decides where to connect."""

    scheme: str
    host: str
    port: int
    path: str


async def system_resolver(host: str, port: int) -> list[str]:
    """The addresses that the machine's resolver returns."""
    found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(one[4][0]) for one in found]


def parse_url(url: str, *, allow_http: bool = False) -> CheckedUrl:
    """The URL's parts. Raises `UnsafeAddress` unless it is https with a plain name or address and without a user."""
    if len(url) > MAX_URL_CHARS or any(ord(letter) <= 0x20 or ord(letter) >= 0x7F for letter in url) or "\\" in url:
        raise UnsafeAddress("a webhook URL is plain ASCII of at most 2,048 characters", param="url")
    try:
        parts = urlsplit(url)
        host, port = (parts.hostname or "").lower(), parts.port
    except ValueError as error:
        raise UnsafeAddress(f"this is not a URL: {error}", param="url") from None
    if parts.scheme != "https" and not (allow_http and parts.scheme == "http"):
        raise UnsafeAddress("a webhook URL begins with https://", param="url")
    if parts.username is not None or parts.password is not None or not host:
        raise UnsafeAddress("a webhook URL has a host and no user or password", param="url")
    if "[" not in parts.netloc:
        _check_name(host)
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return CheckedUrl(parts.scheme, host.rstrip("."), port or (443 if parts.scheme == "https" else 80), path)


def _check_name(host: str) -> None:
    """Names as DNS has them; numbers only as a full dotted quad (127.1, 0x7f000001 and 2130706433 are loopback too)."""
    if not _HOST.fullmatch(host):
        raise UnsafeAddress(f"{host[:80]!r} is not a host name", param="url")
    if _NUMBERISH.fullmatch(host.rstrip(".").rpartition(".")[2]):
        try:
            ipaddress.IPv4Address(host)
        except ValueError:
            raise UnsafeAddress(f"{host[:80]!r} is an address in disguise", param="url") from None


def check_address(text: str) -> Address:
    """The address if it is public. Raises `UnsafeAddress` otherwise.

    IPv6 addresses that contain an IPv4 address (mapped, 6to4, Teredo, NAT64) are always refused.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise UnsafeAddress(f"{text[:80]!r} is not a plain address", param="url") from None
    fine = address.is_global and not (address.is_multicast or address.is_reserved or address.is_unspecified)
    if isinstance(address, ipaddress.IPv6Address):
        carries = address.ipv4_mapped or address.sixtofour or address.teredo
        fine = fine and address in _UNICAST and not carries and address.scope_id is None
    if not fine:
        raise UnsafeAddress(f"{text[:80]} is not a public address", param="url")
    return address


def check_url(url: str) -> CheckedUrl:
    """Check what can be checked without a call: the URL's form, and its address if it is written as one. What a name
    resolves to is checked at every call."""
    target = parse_url(url)
    try:
        ipaddress.ip_address(target.host)
    except ValueError:
        return target
    check_address(target.host)
    return target


_UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # NAT64 (64:ff9b::), ::/96 and all else lie outside


@functools.cache
def _system_trust() -> ssl.SSLContext:
    """The certificates that are trusted by default. Cached, because reading them takes longer than a call."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


class SafeHttpClient:
    """An HTTP client for URLs from outside. `trusted` addresses are allowed although not public (for tests).

    httpx is loaded by the first call, in a thread: many servers never call anybody, and it takes long to load.
    """

    def __init__(
        self,
        *,
        resolver: Resolver = system_resolver,
        allow_http: bool = False,
        trusted: frozenset[str] = frozenset(),
        transport: "httpx.AsyncBaseTransport | None" = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._resolver, self._allow_http, self._trusted, self._timeout_s = resolver, allow_http, trusted, timeout_s
        self._transport, self._tls = transport, tls
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def _open(self) -> "httpx.AsyncClient":
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make_client)
        return self._client

    def _make_client(self) -> "httpx.AsyncClient":
        import httpx

        limits = httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=0)
        return httpx.AsyncClient(
            transport=self._transport
            or httpx.AsyncHTTPTransport(verify=self._tls or _system_trust(), limits=limits, trust_env=False),
            trust_env=False,
            follow_redirects=False,
            timeout=self._timeout_s,
        )

    async def resolve(self, target: CheckedUrl) -> str:
        """One address of the host. All of its addresses must be public, so that DNS cannot mix in a private one."""
        try:
            found = [str(ipaddress.ip_address(target.host))]
        except ValueError:
            try:
                found = await self._resolver(target.host, target.port)
            except OSError as error:
                raise Unavailable(f"{target.host} cannot be resolved: {error}") from error
        if not found:
            raise Unavailable(f"{target.host} has no address")
        for address in found:
            if address not in self._trusted:
                check_address(address)
        return found[0]

    async def check(self, url: str) -> CheckedUrl:
        """The URL's parts if it may be called now, for registration. Raises `UnsafeAddress` or `Unavailable`."""
        target = parse_url(url, allow_http=self._allow_http)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self.resolve(target)
        except TimeoutError as error:
            raise Unavailable(f"{target.host} cannot be resolved in time") from error
        return target

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post and return the receiver's status. Raises `UnsafeAddress` if it must not be called, and `Unavailable` if
        it does not answer in time."""
        target = parse_url(url, allow_http=self._allow_http)
        client = await self._open()
        import httpx  # loaded by now

        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._post(client, target, await self.resolve(target), body, headers)
        except (httpx.HTTPError, OSError, TimeoutError) as error:
            raise Unavailable(f"{target.host} does not answer ({type(error).__name__})") from error

    async def _post(
        self, client: "httpx.AsyncClient", target: CheckedUrl, address: str, body: bytes, headers: Mapping[str, str]
    ) -> int:
        netloc = f"[{address}]" if ":" in address else address
        request = client.build_request(
            "POST",
            f"{target.scheme}://{netloc}:{target.port}{target.path}",
            content=body,
            headers={**headers, "Host": target.host if target.port in (80, 443) else f"{target.host}:{target.port}"},
            extensions={"sni_hostname": target.host},
        )
        response = await client.send(request, stream=True)
        try:
            size = 0
            async for chunk in response.aiter_raw():
                size += len(chunk)
                if size > MAX_ANSWER_BYTES:
                    break
        finally:
            await response.aclose()
        return response.status_code

    async def aclose(self) -> None:
        if self._client is not None:
            await self._client.aclose()
