"""Pictures that were asked for lately, kept in memory: at the start of a sale everybody asks for the same few."""

from typing import Final, Protocol

from frontrow.core.errors import NotFound

MAX_KEPT_BYTES: Final = 16 * 1024 * 1024


class PictureSource(Protocol):
    """Where pictures are (`ledger.pictures`)."""

    async def find(self, picture_hash: str) -> bytes | None: ...


class PictureCache:
    """Finds pictures by their hash; the least recently used are forgotten first."""

    def __init__(self, source: PictureSource, *, max_bytes: int = MAX_KEPT_BYTES) -> None:
        self._source, self._max_bytes = source, max_bytes
        self._kept: dict[str, bytes] = {}
        self._bytes = 0

    async def find(self, picture_hash: str) -> bytes:
        """The picture. `NotFound` if there is none."""
        body = self._kept.pop(picture_hash, None)
        if body is None:
            body = await self._source.find(picture_hash)
            if body is None:
                raise NotFound("there is no such picture")
            if picture_hash in self._kept:  # somebody else read it meanwhile
                return body
            self._bytes += len(body)
        self._kept[picture_hash] = body
        while self._bytes > self._max_bytes:
            self._bytes -= len(self._kept.pop(next(iter(self._kept))))
        return body
