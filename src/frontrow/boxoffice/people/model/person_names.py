"""Names of buyers, and how they are found by a part of them.

A name is searched in its folded form: without accents and case, in words. Every tail of every word is kept in an index
for each event its owner bought in. So any part of a word is the beginning of a tail: `vela` finds Ada Lovelace by the
tail `velace`.
"""

import unicodedata
from typing import Final

MAX_NAME_CHARS: Final = 120
MAX_TAILS: Final = 64  # of one name
MAX_TAIL_CHARS: Final = 24
LAST: Final = "\U0010ffff"  # sorts after every tail that begins with the same letters

_WHOLE: Final = str.maketrans(  # letters that Unicode does not take apart into a plain one and a mark
    {"ø": "o", "đ": "d", "ð": "d", "ł": "l", "ħ": "h", "ı": "i", "æ": "ae", "œ": "oe", "þ": "th"}
)
_JOINERS: Final = "\u200c\u200d"  # letters of Persian and Indic names are joined or kept apart by them


def clean_name(text: str) -> str:
    """A name as it is kept: NFC, one line, nothing invisible; empty when nothing is left."""
    letters = (letter if letter.isprintable() or letter in _JOINERS else " " for letter in text[: 4 * MAX_NAME_CHARS])
    name = " ".join(unicodedata.normalize("NFC", "".join(letters)).split())
    return name[:MAX_NAME_CHARS].strip() if name.strip(_JOINERS + " ") else ""


def folded_name(name: str) -> str:
    """The words of a name without accents, case and punctuation, with one space between them."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", name).casefold()).translate(_WHOLE)
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
