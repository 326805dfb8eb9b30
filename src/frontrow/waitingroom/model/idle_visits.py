"""When an idle visit ends (W6): only if somebody waits for its place, and not before its page could ask.

Both stores decide by these numbers: `stores/memory.py`, and `stores/lua/common.lua`, whose copy the Redis store writes.
"""

from typing import Final

PLATFORM_IDLE_S: Final = 480  # a visit of `frontrow serve` is idle after so long, unless room.idle_s says otherwise
PATIENCE_S: Final = 60  # an idle visit ends only after somebody has waited so long: its page can ask first
AWAY_S: Final = 30  # after so long without a sweep, nobody could reach the store: no visitor could be heard
