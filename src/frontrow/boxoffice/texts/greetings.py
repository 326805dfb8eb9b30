"""When a message to buyers gets our greeting: unless the organiser wrote one."""

from typing import Final

MAX_GREETING_CHARS: Final = 60
GREETING_ENDS: Final = (",", "!", "،", "、", "，", "！")


def greets_already(text: str) -> bool:
    """Whether a text begins with a greeting of its own: a short first line that ends as salutations do."""
    first = text.strip().partition("\n")[0].strip().rstrip("*_ ")
    return len(first) <= MAX_GREETING_CHARS and first.endswith(GREETING_ENDS)
