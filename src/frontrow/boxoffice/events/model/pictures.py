"""Pictures that organisers upload: prepared ones as values, and how long one is kept that nothing shows. Pure."""

from typing import Final

import msgspec

from frontrow.core.clock import US_PER_S

KEEP_UNUSED_US: Final = 7 * 86_400 * US_PER_S  # caches and shared links still ask for it


class Picture(msgspec.Struct, frozen=True):
    """A prepared picture. `hash` names its bytes."""

    hash: str
    body: bytes
    width: int
    height: int
