"""Names of buyers, and how they are found by a part of them.

A name is searched in its folded form: without accents and case, in words. Every tail of every word is kept in an index,
so any part of a word is the beginning of one of its tails: `vela` finds Ada Lovelace by the tail `velace`.
"""

import unicodedata
from typing import Final

MAX_TAILS: Final = 64  # of one name
MAX_TAIL_CHARS: Final = 24
LAST: Final = "\U0010ffff"  # sorts after every tail that begins with the same letters


def folded_name(name: str) -> str:
    """The words of a name without accents, case and punctuation, with one space between them."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold())
    kept = (letter for letter in plain if not unicodedata.combining(letter))
    return " ".join("".join(letter if letter.isalnum() else " " for letter in kept).split())


def name_tails(folded: str) -> list[str]:
    """What the index keeps of a folded name."""
    tails = (word[start:][:MAX_TAIL_CHARS] for word in folded.split() for start in range(len(word)))
    return sorted(set(list(tails)[:MAX_TAILS]))


def search_words(text: str) -> list[str]:
    """The words somebody searches for, the most telling first; none when there is nothing to go by."""
    words = sorted(set(folded_name(text[:200]).split()), key=lambda word: (-len(word), word))
    return [word[:MAX_TAIL_CHARS] for word in words] if words and (len(words[0]) > 1 or not words[0].isascii()) else []
