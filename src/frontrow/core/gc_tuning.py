"""Python's cycle collector in a server that has started.

What the start made lives as long as the process, so it is never walked again. Afterwards young objects are looked at
less often: a sale leaves some hundred thousand that stay, and by default the collector stopped everything for tens of
milliseconds to walk all of them, again and again.
"""

import gc
from typing import Final

THRESHOLDS: Final = (10_000, 20, 50)


def settle() -> None:
    """Call once, when everything that stays has been made."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
