"""Tunes Python's cycle collector for a server that has started.

Objects created at startup live as long as the process. So nothing is collected while they are made, and then they are
frozen and never scanned again. After that, young objects are scanned less often. A sale leaves several hundred thousand
objects that stay, and with the default thresholds the collector stopped the process for tens of milliseconds, again and
again, to scan all of them.
"""

import gc
from typing import Final

THRESHOLDS: Final = (10_000, 20, 50)


def pause_while_starting() -> None:
    """Collect nothing until `freeze_after_startup`: a tenth of the start went into scanning what stays."""
    gc.disable()


def freeze_after_startup() -> None:
    """Call once, after startup."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
    gc.enable()
