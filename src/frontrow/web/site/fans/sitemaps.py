"""Sitemaps: the addresses of all public events for search engines, built at most every ten minutes."""

import asyncio
import gzip
from typing import Final, Protocol
from xml.sax.saxutils import escape

from frontrow.core.clock import US_PER_S, Clock
from frontrow.shared.local_time import time_text

PER_SITEMAP: Final = 50_000  # the most that the protocol allows
MAX_SITEMAPS: Final = 50
KEPT_US: Final = 600 * US_PER_S
NAMESPACE: Final = "http://www.sitemaps.org/schemas/sitemap/0.9"
Entry = tuple[str, int]  # an event and when it changed


class PublicEvents(Protocol):
    """What sitemaps read."""

    async def public_events(self, after: tuple[int, str], limit: int) -> tuple[list[Entry], tuple[int, str]]: ...


class Sitemaps:
    """The sitemaps of all public events, compressed. One build at a time."""

    def __init__(self, catalogue: PublicEvents, public_url: str, clock: Clock, per_file: int = PER_SITEMAP) -> None:
        self._catalogue, self._site, self._clock = catalogue, public_url.rstrip("/"), clock
        self._per_file = per_file
        self._built_at_us = -1
        self._files: list[bytes] = []
        self._building = asyncio.Lock()

    async def whole(self) -> bytes:
        """The only file, or an index of several."""
        files = await self.files()
        if len(files) == 1:
            return files[0]
        site = escape(self._site)
        parts = [f"<sitemap><loc>{site}/sitemaps/{number + 1}</loc></sitemap>" for number in range(len(files))]
        return _document("sitemapindex", parts)

    async def files(self) -> list[bytes]:
        """The files, each with as many addresses as one may have."""
        async with self._building:
            now_us = self._clock()
            if self._built_at_us < 0 or now_us - self._built_at_us >= KEPT_US:
                self._files = await self._build()
                self._built_at_us = now_us
            return self._files

    async def _build(self) -> list[bytes]:
        after, files = (-1, ""), list[bytes]()
        for number in range(MAX_SITEMAPS):
            first = [f"{self._site}/"] if number == 0 else []
            limit = self._per_file - len(first)
            entries, after = await self._catalogue.public_events(after, limit)
            if entries or first:
                files.append(await asyncio.to_thread(_sitemap, self._site, first, entries))
            if len(entries) < limit:
                break
        return files


def _sitemap(site: str, first: list[str], entries: list[Entry]) -> bytes:
    addresses = [f"<url><loc>{escape(address)}</loc></url>" for address in first]
    addresses += [
        f"<url><loc>{escape(site)}/events/{escape(event_id)}</loc><lastmod>{time_text(changed_us)}</lastmod></url>"
        for event_id, changed_us in entries
    ]
    return _document("urlset", addresses)


def _document(kind: str, parts: list[str]) -> bytes:
    text = f'<?xml version="1.0" encoding="UTF-8"?>\n<{kind} xmlns="{NAMESPACE}">{"".join(parts)}</{kind}>\n'
    return gzip.compress(text.encode(), 5, mtime=0)
