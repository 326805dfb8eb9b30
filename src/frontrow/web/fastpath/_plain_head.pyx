# cython: language_level=3, boundscheck=False, wraparound=False
"""Reads a request that is plain and whole, in one pass over its bytes.

Plain means: nothing in it that a parser could read in two ways or that needs more than one answer. Whatever is not plain
(another version, an upgrade, chunks, `Expect`, a fold, an empty value, an unusual character) is left to httptools, which
also refuses what must be refused. So this accepts less than httptools does, and what it accepts it reads the same way;
`bench/head_fuzz.py` compares the two. Bytes objects end with a zero, which belongs to no class of characters, so no loop
runs beyond the end.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from libc.string cimport memcmp

DEF URL = 1
DEF NAME = 2
DEF VALUE = 4
DEF MAX_LINES = 100
DEF MAX_LENGTH_DIGITS = 5

cdef unsigned char classes[256]
cdef bytes GET = b"GET", POST = b"POST", PATCH = b"PATCH", DELETE = b"DELETE"


cdef void _mark(bytes characters, unsigned char kind):
    for character in characters:
        classes[<unsigned char>character] |= kind


_alphanumeric = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_mark(_alphanumeric + b"/-_.~%?=&:,+", URL)
_mark(_alphanumeric + b"-_", NAME)
_mark(bytes(range(0x20, 0x7F)), VALUE)


cdef inline bint is_word(const unsigned char* text, Py_ssize_t size, const char* word, Py_ssize_t word_size) noexcept nogil:
    """Whether the text of visible characters is this word of lower-case letters and dashes, in any case."""
    cdef Py_ssize_t at
    if size != word_size:
        return False
    for at in range(size):
        if text[at] | 0x20 != word[at]:
            return False
    return True


cdef inline bint is_careful(const unsigned char* name, Py_ssize_t size) noexcept nogil:
    """Whether a header changes how the request or its connection is to be read."""
    return (
        is_word(name, size, b"expect", 6)
        or is_word(name, size, b"upgrade", 7)
        or is_word(name, size, b"proxy-connection", 16)
        or is_word(name, size, b"transfer-encoding", 17)
    )


cdef inline Py_ssize_t read_length(const unsigned char* value, Py_ssize_t size) noexcept nogil:
    """The number, or -1."""
    cdef Py_ssize_t length = 0, at
    if size > MAX_LENGTH_DIGITS:
        return -1
    for at in range(size):
        if not 0x30 <= value[at] <= 0x39:
            return -1
        length = length * 10 + value[at] - 0x30
    return length


def read_plain(data):
    """`((method, url), headers, body)` if `data` is exactly one plain request that keeps its connection, else None."""
    if not PyBytes_CheckExact(data):
        return None
    cdef const unsigned char* text = <const unsigned char*>PyBytes_AS_STRING(data)
    cdef Py_ssize_t size = PyBytes_GET_SIZE(data)
    cdef Py_ssize_t at, start, name_size, length = -1, count = 0
    cdef const unsigned char* name
    cdef bytes method
    cdef list lines = []
    if size < 18:  # GET / HTTP/1.1 and two ends of a line
        return None
    if memcmp(text, b"GET ", 4) == 0:
        method, at = GET, 4
    elif memcmp(text, b"POST ", 5) == 0:
        method, at = POST, 5
    elif memcmp(text, b"PATCH ", 6) == 0:
        method, at = PATCH, 6
    elif memcmp(text, b"DELETE ", 7) == 0:
        method, at = DELETE, 7
    else:
        return None
    start = at
    while classes[text[at]] & URL:
        at += 1
    if text[start] != 0x2F or size - at < 13 or memcmp(text + at, b" HTTP/1.1\r\n", 11) != 0:
        return None
    url = PyBytes_FromStringAndSize(<const char*>text + start, at - start)
    at += 11
    while text[at] != 0x0D:
        name = text + at
        while classes[text[at]] & NAME:
            at += 1
        name_size = text + at - name
        if name_size == 0 or text[at] != 0x3A:
            return None
        at += 1
        while text[at] == 0x20:
            at += 1
        start = at
        while classes[text[at]] & VALUE:
            at += 1
        if at == start or text[at - 1] == 0x20 or text[at] != 0x0D or text[at + 1] != 0x0A:
            return None
        if is_careful(name, name_size):
            return None
        if is_word(name, name_size, b"connection", 10):
            if not is_word(text + start, at - start, b"keep-alive", 10):
                return None
        elif is_word(name, name_size, b"content-length", 14):
            if length >= 0:
                return None
            length = read_length(text + start, at - start)
            if length < 0:
                return None
        count += 1
        if count > MAX_LINES:
            return None
        lines.append(
            (
                PyBytes_FromStringAndSize(<const char*>name, name_size),
                PyBytes_FromStringAndSize(<const char*>text + start, at - start),
            )
        )
        at += 2
    if text[at + 1] != 0x0A:
        return None
    at += 2
    if at + (length if length > 0 else 0) != size:
        return None
    return (method, url), lines, PyBytes_FromStringAndSize(<const char*>text + at, size - at)
