"""An HTTP client for URLs from outside (webhooks, push). It calls only public addresses, so it is safe against SSRF.

The host is resolved, every address is checked, and the connection goes to the checked address itself. The name is used
only in the Host header and the TLS handshake, so a later DNS change does not matter. Names are resolved in a bounded
number of threads of their own, so that a slow name server delays nothing else (`NameResolver`). Redirects are not
followed, proxies from the environment are not used, connections and cookies are not shared between receivers, and time
and response size are bounded.
"""

import asyncio
import contextlib
import functools
import ipaddress
import re
import socket
import ssl
import threading
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
MAX_LOOKUPS: Final = 32  # names that are resolved at a time
MAX_ADDRESSES: Final = 4  # of one name, tried in their order until one takes the connection
_HOST: Final = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?\.?", re.ASCII)
_NUMBERISH: Final = re.compile(r"(0x[0-9a-f]*|[0-9]+)", re.ASCII)

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Resolver = Callable[[str, int], Awaitable[list[str]]]
LookUp = Callable[[str, int], list[str]]


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


class NameResolver:
    """The machine's resolver in threads of its own: at most `MAX_LOOKUPS` names at a time, each asked for once.

    The loop's own threads read plans and files. A name server that does not answer keeps a thread for half a minute,
    so it must not have those. The threads do not hold up the end of the program.
    """

    def __init__(self, look_up: LookUp | None = None) -> None:
        self._look_up = look_up or _system_look_up
        self._running: dict[tuple[str, int], asyncio.Future[list[str]]] = {}

    async def __call__(self, host: str, port: int) -> list[str]:
        """The addresses of a host. Raises `OSError` if it has none, and `Unavailable` if too many wait already."""
        running = self._running.get((host, port))
        if running is None:
            if len(self._running) >= MAX_LOOKUPS:
                raise Unavailable(f"{MAX_LOOKUPS} other names are being resolved", retry_after_s=TIMEOUT_S)
            running = self._start(host, port)
        return await asyncio.shield(running)  # others may wait for the same name

    def _start(self, host: str, port: int) -> asyncio.Future[list[str]]:
        loop = asyncio.get_running_loop()
        running: asyncio.Future[list[str]] = loop.create_future()

        def end(found: list[str], error: Exception | None) -> None:
            self._running.pop((host, port), None)
            if running.done():
                return
            if error is None:
                running.set_result(found)
            else:
                running.set_exception(error)
                running.exception()  # perhaps nobody waits any more

        def work() -> None:
            found: list[str] = []
            error: Exception | None = None
            try:
                found = self._look_up(host, port)
            except UnicodeError as failed:  # a label longer than DNS allows
                error = OSError(str(failed))
            except Exception as failed:  # passed on to the waiting callers
                error = failed
            with contextlib.suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(end, found, error)

        threading.Thread(target=work, name=f"resolve {host}", daemon=True).start()
        self._running[host, port] = running  # if a thread could be had; `end` comes later
        return running


def _system_look_up(host: str, port: int) -> list[str]:
    return [str(one[4][0]) for one in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]


def is_loopback(host: str) -> bool:
    """Whether a host is this machine itself: `localhost`, or an address of its loopback. One that is mapped into IPv6
    is not: Python 3.13 would say so, earlier ones not."""
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost"
    return address.is_loopback and (address.version == 4 or int(address) == 1)


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

    Refused is everything in IANA's registries of special-purpose addresses, also what they call globally reachable.
    IPv6 addresses that contain an IPv4 address (mapped, 6to4, Teredo, NAT64, ISATAP) are always refused.
    """
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        raise UnsafeAddress(f"{text[:80]!r} is not a plain address", param="url") from None
    if isinstance(address, ipaddress.IPv6Address):
        special = address.scope_id is not None or address not in _UNICAST or any(address in one for one in _SPECIAL_6)
        special = special or int(address) >> 32 & 0xFFFFFFFF in _ISATAP
    else:
        special = any(address in one for one in _SPECIAL_4)
    if special or not address.is_global or address.is_multicast or address.is_reserved:
        raise UnsafeAddress(f"{text[:80]} is not a public address", param="url")
    return address


def _host_of(url: str) -> str:
    try:
        return (urlsplit(url).hostname or "").lower()
    except ValueError:
        return ""


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


# https://www.iana.org/assignments/iana-ipv4-special-registry and …/iana-ipv6-special-registry. What Python's
# `is_global` covers of them differs from version to version.
_SPECIAL_4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",
            "10.0.0.0/8",
            "100.64.0.0/10",
            "127.0.0.0/8",
            "168.63.129.16/32",  # in no registry: Azure's own services, for the machines in it
            "169.254.0.0/16",
            "172.16.0.0/12",
            "192.0.0.0/24",  # 192.0.0.192 is the metadata service of Oracle's cloud
            "192.0.2.0/24",
            "192.31.196.0/24",
            "192.52.193.0/24",
            "192.88.99.0/24",
            "192.168.0.0/16",
            "192.175.48.0/24",
            "198.18.0.0/15",
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",
            "240.0.0.0/4",
        ),
    )
)
_UNICAST: Final = ipaddress.IPv6Network("2000::/3")  # NAT64 (64:ff9b::), ::/96 and all else lie outside
_SPECIAL_6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        ("2001::/23", "2001:db8::/32", "2002::/16", "2620:4f:8000::/48", "3fff::/20"),  # of those inside `_UNICAST`
    )
)
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})  # before the IPv4 address in the second half


@functools.cache
def _system_trust() -> ssl.SSLContext:
    """The certificates that are trusted by default. Cached, because reading them takes longer than a call."""
    import httpx

    return httpx.create_ssl_context(trust_env=False)


class SafeHttpClient:
    """An HTTP client for URLs from outside. `trusted` addresses are allowed although not public (for tests).

    With `loopback` (the demo) it also calls receivers on this machine, by http or https.

    httpx is loaded by the first call, in a thread: many servers never call anybody, and it takes long to load.
    """

    def __init__(
        self,
        *,
        resolver: Resolver | None = None,
        allow_http: bool = False,
        loopback: bool = False,
        trusted: frozenset[str] = frozenset(),
        transport: "httpx.AsyncBaseTransport | None" = None,
        tls: ssl.SSLContext | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self._resolver: Resolver = resolver or NameResolver()
        self._allow_http, self._loopback, self._trusted, self._timeout_s = allow_http, loopback, trusted, timeout_s
        self._transport, self._tls = transport, tls
        self._client: httpx.AsyncClient | None = None
        self._opening = asyncio.Lock()

    async def _open(self) -> "httpx.AsyncClient":
        async with self._opening:
            if self._client is None:
                self._client = await asyncio.to_thread(self._make_client)
        return self._client

    def _make_client(self) -> "httpx.AsyncClient":
        from http.cookiejar import CookieJar, DefaultCookiePolicy

        import httpx

        limits = httpx.Limits(max_connections=MAX_CONNECTIONS, max_keepalive_connections=0)
        return httpx.AsyncClient(
            transport=self._transport
            or httpx.AsyncHTTPTransport(verify=self._tls or _system_trust(), limits=limits, trust_env=False),
            trust_env=False,
            follow_redirects=False,
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=())),  # none: others have the same address
            timeout=self._timeout_s,
        )

    async def resolve(self, target: CheckedUrl) -> list[str]:
        """The addresses of the host. All of them must be public, so that DNS cannot mix in a private one."""
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
            if address not in self._trusted and not (self._loopback and is_loopback(address)):
                check_address(address)
        return found

    def parse(self, url: str) -> CheckedUrl:
        """The URL's parts, if its form is one that this client calls."""
        if self._loopback and is_loopback(_host_of(url)):
            return parse_url(url, allow_http=True)
        return parse_url(url, allow_http=self._allow_http)

    def check_form(self, url: str) -> CheckedUrl:
        """Check what can be checked without a call: the URL's form, and its address if it is written as one. What a
        name resolves to is checked at every call."""
        target = self.parse(url)
        with contextlib.suppress(ValueError):
            address = str(ipaddress.ip_address(target.host))
            if not (self._loopback and is_loopback(address)):
                check_address(address)
        return target

    async def check(self, url: str) -> CheckedUrl:
        """The URL's parts if it may be called now, for registration. Raises `UnsafeAddress` or `Unavailable`."""
        target = self.parse(url)
        try:
            async with asyncio.timeout(self._timeout_s):
                await self.resolve(target)
        except TimeoutError as error:
            raise Unavailable(f"{target.host} cannot be resolved in time") from error
        return target

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> int:
        """Post and return the receiver's status. Raises `UnsafeAddress` if it must not be called, and `Unavailable` if
        it does not answer in time."""
        target = self.parse(url)
        client = await self._open()
        import httpx  # loaded by now

        try:
            async with asyncio.timeout(self._timeout_s):
                *others, last = (await self.resolve(target))[:MAX_ADDRESSES]
                for address in others:
                    with contextlib.suppress(httpx.ConnectError):  # nobody listens there: nothing was sent
                        return await self._post(client, target, address, body, headers)
                return await self._post(client, target, last, body, headers)
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
