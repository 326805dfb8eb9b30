# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False, auto_pickle=False
"""The in-process store, compiled. It runs the algorithms of algorithms.py over open-addressing tables of 24-byte entries.

The store is exact under threads and needs no lock of its own. Between reading a state and writing it, nothing here
allocates a garbage-collected object or calls Python code, so the interpreter lock is never released. The clock is read
before that and the Decision is built after it. Keys are exact strings and bytes, so comparing them calls no Python code.
Idle keys leave in generations, and at `max_keys` a new key takes the place of another, as in key_table.py.
"""

cimport cython

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.dict cimport PyDict_CheckExact, PyDict_Next, PyDict_Size
from cpython.exc cimport PyErr_Clear
from cpython.long cimport PyLong_CheckExact, PyLong_FromLongLong
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_REFCNT, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_GET_SIZE, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_GET_LENGTH
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc
from libc.string cimport memcpy

cdef extern from "Python.h":
    Py_hash_t PyObject_Hash(object) except -1
    int PyObject_RichCompareBool(PyObject*, PyObject*, int) except -1
    PyTypeObject* Py_TYPE(PyObject*)
    PyObject* PyDict_GetItemWithError(object, object) except? NULL
    const char* PyUnicode_AsUTF8AndSize(object, Py_ssize_t*)
    object PyUnicode_DecodeLatin1(const char*, Py_ssize_t, const char*)
    int PyUnicode_Compare(PyObject*, PyObject*)
    long long PyLong_AsLongLongAndOverflow(object, int*) except? -1
    unsigned long long PyLong_AsUnsignedLongLongMask(object) except? 0xFFFFFFFFFFFFFFFF
    int Py_EQ

cdef extern from *:
    """
    #include <time.h>
    #include <stdint.h>
    /* Only on Linux is this the clock of Python's time.monotonic_ns, which a SystemClock continues. */
    #ifdef __linux__
    #define FRONTROW_READS_CLOCK 1
    static int64_t frontrow_monotonic_ns(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
    }
    #else
    #define FRONTROW_READS_CLOCK 0
    static int64_t frontrow_monotonic_ns(void) { return 0; }
    #endif
    /* Large tables are mapped, so that what a growing table leaves behind goes back to the system at once. */
    #define FRONTROW_LARGE (1 << 20)
    #ifdef _WIN32
    static void *frontrow_zeroed(size_t bytes) { return calloc(1, bytes); }
    static void frontrow_free(void *memory, size_t bytes) { free(memory); }
    #else
    #include <sys/mman.h>
    static void *frontrow_zeroed(size_t bytes) {
        void *memory;
        if (bytes < FRONTROW_LARGE) return calloc(1, bytes);
        memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED) return NULL;
    #ifdef MADV_HUGEPAGE
        madvise(memory, bytes, MADV_HUGEPAGE);  /* keys lie anywhere in it: fewer pages, fewer misses */
    #endif
        return memory;
    }
    static void frontrow_free(void *memory, size_t bytes) {
        if (memory == NULL) return;
        if (bytes < FRONTROW_LARGE) free(memory); else munmap(memory, bytes);
    }
    #endif
    #if defined(__GNUC__) || defined(__clang__)
    #define frontrow_prefetch(address) __builtin_prefetch(address)
    #else
    #define frontrow_prefetch(address) ((void)(address))
    #endif
    static PyObject *frontrow_new_tuple(PyObject *kind, Py_ssize_t size) {
        return ((PyTypeObject *)kind)->tp_alloc((PyTypeObject *)kind, size);
    }
    /* `await` asks am_send first. It returns the result without raising StopIteration. */
    typedef int (*frontrow_send_function)(PyObject *, PyObject *, PyObject **);
    static void frontrow_set_send(PyObject *kind, frontrow_send_function send) {
        ((PyTypeObject *)kind)->tp_as_async->am_send = (sendfunc)send;
    }
    static void frontrow_warn_never_awaited(void) {
        if (PyErr_WarnEx(PyExc_RuntimeWarning, "coroutine 'Limiter.acheck' was never awaited", 1) < 0)
            PyErr_WriteUnraisable(NULL);
    }
    """
    ctypedef int (*frontrow_send_function)(object, object, PyObject**) except -1
    int FRONTROW_READS_CLOCK
    int64_t frontrow_monotonic_ns()
    void* frontrow_zeroed(size_t size)
    void frontrow_free(void* memory, size_t size)
    void frontrow_prefetch(void* address)
    object frontrow_new_tuple(object kind, Py_ssize_t size)
    void frontrow_set_send(object kind, frontrow_send_function send)
    void frontrow_warn_never_awaited()

from uuid import UUID

from frontrow.core.clock import SystemClock
from frontrow.limits.keys import GLOBAL_KEY
from frontrow.limits.quota import ALGORITHMS, EXACT, Decision
from frontrow.limits.stores.protocol import StoreResult

DEF CHECK_OP = 0
DEF PEEK_OP = 1
DEF REFUND_OP = 2
DEF CHARGE_OP = 5
DEF RESET_OP = 6
DEF MAX_RULES = 32
DEF FREED_PER_CHECK = 32
DEF SCANNED_PER_CHECK = 512
DEF SAMPLED_PER_TABLE = 32
DEF SCANNED_PER_SAMPLE = 256
DEF MAX_KEY_CHARS = 256
DEF MAX_PARTS = 8  # of a mapping that is counted as a whole; `fallback` takes larger ones
DEF UUID_CHARS = 36
DEF KNOWN_KEYS = 1024
DEF FIXED = 0
DEF LOG = 1
DEF COUNTER = 2
DEF QUEUE = 5

cdef int64_t DAY = 86_400_000_000
cdef int64_t LOW_HALF = 0xFFFFFFFF  # as a literal it would be a Python object

cdef struct Ring:  # times of one key's log, oldest first from head
    int64_t* times
    int64_t size
    int64_t head
    int64_t count

cdef struct Entry:
    uint64_t marked  # the key's address, with bits of its hash in the three lowest, which no address of an object uses
    int64_t a
    int64_t b

cdef struct Table:
    Entry* entries
    int64_t mask  # size - 1; -1 when there is no table yet
    int64_t used
    int64_t cursor  # how far a doomed table is freed; in other tables, where the next sample starts

cdef struct QuotaSlot:
    int algorithm
    bint shadow
    bint calendar_month
    int64_t limit
    int64_t period
    int64_t grain
    int64_t width  # the period in grains
    int64_t leak
    int64_t unit
    int64_t capacity
    int64_t most_owed
    int64_t life
    int64_t max_keys
    Table young
    Table old
    Table doomed
    int64_t turn  # how often a generation turns: a life, or longer
    int64_t turn_at
    bint turning
    int64_t allowed
    int64_t refused
    int64_t shadow_refused

cdef struct KnownKey:  # a store key that was made of a part, a number or a UUID
    PyObject* name  # of the part; NULL for a whole key
    PyTypeObject* kind  # of the value
    PyObject* value  # a text or a whole number; of a UUID, its number
    PyObject* key

cdef struct Verdict:
    bint allowed
    bint moved
    bint write  # a refusal writes only when the clock was set back
    int64_t remaining
    int64_t reset
    int64_t retry
    int64_t delay
    int64_t a
    int64_t b
    int64_t now
    Entry* found
    bint in_old


cdef inline int64_t floor_div(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t q = a / b
    return q - 1 if (a % b != 0 and (a < 0) != (b < 0)) else q


cdef inline int64_t ceil_div(int64_t a, int64_t b) noexcept nogil:
    return -floor_div(-a, b)


# -- tables ----------------------------------------------------------------------------------------------------------

cdef inline int64_t home_of(Table* table, Py_hash_t hashed) noexcept nogil:
    """Where the search for a key with this hash starts."""
    return <int64_t>((<uint64_t>hashed * <uint64_t>0x9E3779B97F4A7C15) >> 20) & table.mask


cdef inline uint64_t mark(PyObject* key, Py_hash_t hashed) noexcept nogil:
    """The key's address with bits of its hash. Two keys whose bits differ need not be read to be told apart."""
    return <uint64_t>key | (<uint64_t>hashed >> 61)


cdef inline PyObject* key_of(Entry* entry) noexcept nogil:
    return <PyObject*>(entry.marked & ~<uint64_t>7)


cdef inline Entry* entry_of(Table* table, PyObject* key, Py_hash_t hashed) except NULL:
    """The entry of `key`, or the empty entry where it would go."""
    cdef int64_t at = home_of(table, hashed)
    cdef uint64_t marked = mark(key, hashed)
    cdef Entry* entry
    while True:  # ends: tables are never more than two thirds full
        entry = &table.entries[at]
        if entry.marked == 0 or entry.marked == marked:
            return entry
        if (entry.marked ^ marked) & 7 == 0 and Py_TYPE(key_of(entry)) == Py_TYPE(key):
            if PyObject_Hash(<object>key_of(entry)) == hashed and PyObject_RichCompareBool(key_of(entry), key, Py_EQ):
                return entry
        at = (at + 1) & table.mask


cdef inline Entry* find(Table* table, PyObject* key, Py_hash_t hashed) except? NULL:
    if table.used == 0:
        return NULL
    cdef Entry* entry = entry_of(table, key, hashed)
    return NULL if entry.marked == 0 else entry


cdef int grow(Table* table) except -1:
    cdef int64_t size = 64 if table.mask < 0 else 2 * (table.mask + 1)
    cdef Table bigger
    cdef PyObject* key
    cdef int64_t at
    bigger.entries = <Entry*>frontrow_zeroed(size * sizeof(Entry))
    if bigger.entries == NULL:
        raise MemoryError()
    bigger.mask = size - 1
    for at in range(table.mask + 1):
        if table.entries[at].marked:
            key = key_of(&table.entries[at])
            entry_of(&bigger, key, PyObject_Hash(<object>key))[0] = table.entries[at]
    frontrow_free(table.entries, (table.mask + 1) * sizeof(Entry))
    table.entries = bigger.entries
    table.mask = bigger.mask
    return 0


cdef int remove(Table* table, Entry* entry) except -1:
    """Remove an entry and move later ones of its chain up, so that they are still found."""
    cdef int64_t gap = entry - table.entries
    cdef int64_t at = (gap + 1) & table.mask
    cdef int64_t home
    cdef PyObject* key = key_of(entry)
    while table.entries[at].marked:
        home = home_of(table, PyObject_Hash(<object>key_of(&table.entries[at])))
        if ((at - home) & table.mask) >= ((at - gap) & table.mask):
            table.entries[gap] = table.entries[at]
            gap = at
        at = (at + 1) & table.mask
    table.entries[gap].marked = 0
    table.used -= 1
    Py_XDECREF(key)
    return 0


cdef Entry* insert(Table* table, object key) except NULL:
    if 3 * (table.used + 1) > 2 * (table.mask + 1):
        grow(table)
    cdef Py_hash_t hashed = PyObject_Hash(key)
    cdef Entry* entry = entry_of(table, <PyObject*>key, hashed)
    if entry.marked == 0:
        Py_INCREF(key)
        entry.marked = mark(<PyObject*>key, hashed)
        table.used += 1
    return entry


cdef void release_ring(int64_t address) noexcept:
    cdef Ring* ring = <Ring*>address
    if ring != NULL:
        free(ring.times)
        free(ring)


cdef void free_doomed(QuotaSlot* slot, int64_t keys, int64_t scan) noexcept:
    """Free up to `keys` doomed keys, reading no more than `scan` entries."""
    cdef Table* table = &slot.doomed
    cdef Entry* entry
    while scan > 0 and keys > 0 and table.cursor <= table.mask:
        entry = &table.entries[table.cursor]
        table.cursor += 1
        scan -= 1
        if entry.marked:
            if slot.algorithm == LOG:
                release_ring(entry.a)
            Py_XDECREF(key_of(entry))
            entry.marked = 0
            table.used -= 1
            keys -= 1
    if table.cursor > table.mask:
        clear(table)


cdef void clear(Table* table) noexcept:
    frontrow_free(table.entries, (table.mask + 1) * sizeof(Entry))
    table.entries = NULL
    table.mask = -1
    table.used = 0
    table.cursor = 0


cdef void drop_all(QuotaSlot* slot, Table* table) noexcept:
    slot.doomed = table[0]
    slot.doomed.cursor = 0
    free_doomed(slot, table.mask + 1, table.mask + 1)
    clear(&slot.doomed)


cdef inline void advance_generation(QuotaSlot* slot, int64_t now) noexcept:
    if not slot.turning or now < slot.turn_at - 2 * slot.turn:
        slot.turning = True
        slot.turn_at = now + slot.turn
    elif now >= slot.turn_at:
        slot.turn_at = now + slot.turn
        if slot.doomed.mask >= 0:  # still there after a whole life: few checks were made, so this is short
            free_doomed(slot, slot.doomed.mask + 1, slot.doomed.mask + 1)
        slot.doomed = slot.old
        slot.doomed.cursor = 0
        slot.old = slot.young
        slot.young.entries = NULL
        slot.young.mask = -1
        slot.young.used = 0
        slot.young.cursor = 0
    if slot.doomed.mask >= 0:
        free_doomed(slot, FREED_PER_CHECK, SCANNED_PER_CHECK)


# -- algorithms: the same arithmetic as algorithms.py -----------------------------------------------------------------

cdef void judge_fixed(QuotaSlot* q, bint seen, int64_t now, int64_t cost, Verdict* v) noexcept:
    cdef int64_t start = month_start(now) if q.calendar_month else window_start(q, seen, now, v)
    cdef int64_t then = v.a if seen else start
    cdef int64_t count = v.b if seen else 0
    v.moved = then - start > q.period
    if then > start and not v.moved:
        start = then
        now = then
    elif then < start:
        count = 0
    v.reset = (month_start(start + q.period) if q.calendar_month else start + q.period) - now
    v.allowed = count + cost <= q.limit
    if v.allowed:
        count += cost
        if count == 0:
            v.reset = 0
    v.retry = 0 if v.allowed else v.reset
    v.remaining = q.limit - count
    v.a = start
    v.b = count


cdef inline int64_t floor_mod(int64_t a, int64_t b) noexcept nogil:
    cdef int64_t r = a % b
    return r + b if r < 0 else r


cdef inline int64_t window_start(QuotaSlot* q, bint seen, int64_t now, Verdict* v) noexcept nogil:
    """Where the window of `now` starts. Nearly always that is where the state's window starts: no division then."""
    return v.a if seen and v.a <= now < v.a + q.period else now - floor_mod(now, q.period)


cdef int64_t month_start(int64_t now) noexcept nogil:
    """The start of the calendar month of `now`, in UTC: see algorithms.py."""
    cdef int64_t day = floor_div(now, DAY)
    cdef int64_t day_of_400_years = floor_mod(day + 719468, 146097)
    cdef int64_t year = (
        day_of_400_years - day_of_400_years / 1460 + day_of_400_years / 36524 - day_of_400_years / 146096
    ) / 365
    cdef int64_t day_of_year = day_of_400_years - (365 * year + year / 4 - year / 100)
    cdef int64_t month = (5 * day_of_year + 2) / 153
    return (day - day_of_year + (153 * month + 2) / 5) * DAY


cdef inline int64_t counter_reset(QuotaSlot* q, int64_t prev, int64_t cur, int64_t into) noexcept nogil:
    if cur > 0:
        return 2 * q.period - into
    return q.period - into if prev > 0 else 0


cdef void judge_counter(QuotaSlot* q, bint seen, int64_t now, int64_t cost, Verdict* v) noexcept:
    cdef int64_t start = window_start(q, seen, now, v)
    cdef int64_t then = v.a if seen else start
    cdef int64_t prev = v.b >> 32 if seen else 0
    cdef int64_t cur = v.b & LOW_HALF if seen else 0
    cdef int64_t width = q.width, left, room, opens
    v.moved = then - start > 2 * q.period
    if then > start and not v.moved:
        start = then
        now = then
    elif then < start:
        prev = cur if start - then == q.period else 0
        cur = 0
    left = q.limit - cur
    if prev > 0:
        left = floor_div(q.limit * width - prev * (width - (now - start) / q.grain), width) - cur
    if left < 0:
        left = 0
    v.allowed = cost <= left
    v.retry = 0
    if v.allowed:
        cur += cost
        left -= cost
    else:
        room = q.limit - cur - cost
        if room >= 0:
            opens = width - room * width / prev
        else:
            opens = 2 * width - (q.limit - cost) * width / cur
        v.retry = start + opens * q.grain - now
    v.remaining = left
    v.reset = counter_reset(q, prev, cur, now - start)
    v.a = start
    v.b = prev << 32 | cur


cdef void judge_bucket(QuotaSlot* q, bint seen, int64_t now, int64_t cost, Verdict* v) noexcept:
    cdef int64_t full = q.capacity * q.unit
    cdef int64_t then = v.a if seen else now
    cdef int64_t debt = v.b if seen else 0
    cdef int64_t owed
    v.moved = then - now > q.life
    if then > now and not v.moved:
        now = then
    elif then < now:
        debt = 0 if now - then >= 2 * q.life else debt - (now - then) * q.leak  # twice: it may owe two buckets
        if debt < 0:
            debt = 0
    owed = debt + cost * q.unit
    v.allowed = owed <= full or cost == 0
    v.retry = 0
    if v.allowed:
        v.delay = ceil_div(debt, q.leak) if q.algorithm == QUEUE else 0
        debt = owed
    else:
        v.retry = ceil_div(owed - full, q.leak)
    v.remaining = (full - debt) / q.unit if debt < full else 0
    v.reset = ceil_div(debt, q.leak)
    v.a = now
    v.b = debt


cdef inline int64_t time_at(Ring* ring, int64_t index) noexcept nogil:
    cdef int64_t at = ring.head + index
    return ring.times[at - ring.size if at >= ring.size else at]


cdef void judge_log(QuotaSlot* q, bint seen, int64_t now, int64_t cost, Verdict* v) noexcept:
    """v.a keeps the ring's address. v.b becomes the number of oldest times that have left the window."""
    cdef Ring* ring = <Ring*>v.a if seen else NULL
    cdef int64_t count = ring.count if ring != NULL else 0
    cdef int64_t back = time_at(ring, count - 1) - now if count else 0
    cdef int64_t shift = 0, low = 0, high = count, middle, left
    v.moved = back > q.period
    if v.moved:
        shift = back
    elif back > 0:
        now += back
    while low < high:
        middle = (low + high) / 2
        if time_at(ring, middle) - shift <= now - q.period:
            low = middle + 1
        else:
            high = middle
    left = q.limit - (count - low)
    v.allowed = cost <= left
    v.retry = 0
    if v.allowed:
        v.remaining = left - cost
        if cost:
            v.reset = q.period
        else:
            v.reset = time_at(ring, count - 1) - shift + q.period - now if count > low else 0
    else:
        v.remaining = left
        v.reset = time_at(ring, count - 1) - shift + q.period - now
        v.retry = time_at(ring, low + cost - left - 1) - shift + q.period - now
    v.a = <int64_t>ring
    v.b = low
    v.now = now


cdef int resize_ring(Ring* ring, int64_t size) except -1:
    cdef int64_t* times = <int64_t*>malloc(size * sizeof(int64_t))
    cdef int64_t index
    if times == NULL:
        raise MemoryError()
    for index in range(ring.count):
        times[index] = time_at(ring, index)
    free(ring.times)
    ring.times = times
    ring.size = size
    ring.head = 0
    return 0


cdef Ring* commit_log(QuotaSlot* q, Verdict* v, int64_t added) except NULL:
    """Drop the times that left the window, then add `added` times. A negative number removes that many newest times."""
    cdef Ring* ring = <Ring*>v.a
    cdef int64_t index, back, wanted, at
    if ring == NULL:
        ring = <Ring*>calloc(1, sizeof(Ring))
        if ring == NULL:
            raise MemoryError()
        v.a = <int64_t>ring
    if v.moved:
        back = time_at(ring, ring.count - 1) - v.now
        for index in range(ring.size):
            ring.times[index] -= back
    ring.head += v.b
    if ring.size and ring.head >= ring.size:
        ring.head -= ring.size
    ring.count -= v.b
    if added < 0:
        ring.count = ring.count + added if ring.count + added > 0 else 0
        return ring
    if ring.count + added > ring.size:
        wanted = ring.count + added
        wanted += wanted / 16 + 2
        resize_ring(ring, wanted if wanted < q.limit else q.limit)
    for index in range(added):
        at = ring.head + ring.count
        ring.times[at - ring.size if at >= ring.size else at] = v.now
        ring.count += 1
    return ring


cdef inline void judge(QuotaSlot* q, bint seen, int64_t now, int64_t cost, Verdict* v) noexcept:
    v.delay = 0
    v.now = now
    if q.algorithm == FIXED:
        judge_fixed(q, seen, now, cost, v)
    elif q.algorithm == LOG:
        judge_log(q, seen, now, cost, v)
    elif q.algorithm == COUNTER:
        judge_counter(q, seen, now, cost, v)
    else:
        judge_bucket(q, seen, now, cost, v)
    v.write = v.allowed or v.moved


cdef void report_uncharged(QuotaSlot* q, int64_t a, int64_t b, bint seen, int64_t now, Verdict* v) noexcept:
    """Give an allowed verdict the figures of the uncharged state."""
    cdef Verdict as_is
    as_is.a = a
    as_is.b = b
    judge(q, seen, now, 0, &as_is)
    v.remaining = as_is.remaining
    v.reset = as_is.reset


# -- at the cap -------------------------------------------------------------------------------------------------------

cdef struct Candidate:  # a key that could be forgotten, and how much its client has left
    Table* table
    Entry* entry
    int64_t left


cdef void sample(QuotaSlot* slot, Table* table, int64_t now, Candidate* best) noexcept:
    """Look at the next few keys of `table`. Keep in `best` the one with most left; stop at one that has used nothing."""
    cdef int64_t looked = 0, scanned = 0
    cdef Entry* entry
    cdef Verdict v
    while looked < SAMPLED_PER_TABLE and scanned <= table.mask and table.used and best.left < slot.capacity:
        if scanned >= SCANNED_PER_SAMPLE and best.entry != NULL:
            return
        table.cursor = (table.cursor + 1) & table.mask
        entry = &table.entries[table.cursor]
        scanned += 1
        if entry.marked == 0:
            continue
        looked += 1
        v.a, v.b = entry.a, entry.b
        judge(slot, True, now, 0, &v)
        if best.entry == NULL or v.remaining > best.left:
            best.table, best.entry, best.left = table, entry, v.remaining


cdef int make_room(QuotaSlot* slot, int64_t now) except -1:
    """Forget one key: a doomed one, else of a sample one that has used nothing or else the least."""
    cdef Candidate best
    cdef int64_t doomed = slot.doomed.used
    if doomed:
        free_doomed(slot, FREED_PER_CHECK, SCANNED_PER_CHECK)
        if slot.doomed.used < doomed:
            return 0
    best.entry, best.left = NULL, -1
    sample(slot, &slot.old, now, &best)
    sample(slot, &slot.young, now, &best)
    if best.entry != NULL:
        if slot.algorithm == LOG:
            release_ring(best.entry.a)
        remove(best.table, best.entry)
    return 0


# -- the store ---------------------------------------------------------------------------------------------------------

@cython.final
cdef class CompiledStore:
    """Exact under any number of threads. Holds at most `max_keys` keys per quota."""

    cdef QuotaSlot* slots
    cdef int slot_count
    cdef object clock
    cdef int64_t offset_ns
    cdef bint system_clock
    cdef tuple names
    cdef tuple limits
    cdef object decision_class
    cdef KnownKey* known
    cdef readonly object tag_parts

    def __cinit__(self, slots, clock, int64_t max_keys, int64_t keep_idle_us=0):
        cdef int at
        cdef QuotaSlot* slot
        self.tag_parts = None
        self.slot_count = len(slots)
        self.slots = <QuotaSlot*>calloc(self.slot_count, sizeof(QuotaSlot))
        if self.slots == NULL:
            raise MemoryError()
        self.clock = clock
        self.system_clock = FRONTROW_READS_CLOCK and type(clock) is SystemClock
        if self.system_clock:
            self.offset_ns = clock.offset_ns
        for at in range(self.slot_count):
            quota = slots[at].quota
            slot = &self.slots[at]
            slot.algorithm = ALGORITHMS.index(quota.algorithm)
            slot.shadow = slots[at].rule.shadow
            slot.limit, slot.period, slot.grain = quota.limit, quota.period_us, quota.grain_us
            slot.calendar_month = quota.calendar_month
            slot.width = slot.period / slot.grain
            slot.leak, slot.unit = quota.drip if quota.is_bucket else (1, 1)
            slot.capacity, slot.life, slot.most_owed = quota.capacity, quota.life_us, quota.most_owed
            slot.max_keys = max_keys
            slot.turn = max(slot.life, keep_idle_us)
            slot.young.mask = slot.old.mask = slot.doomed.mask = -1
        self.names = tuple(slot.rule.name for slot in slots)
        self.limits = tuple(slot.quota.capacity for slot in slots)
        self.decision_class = Decision

    def __dealloc__(self):
        cdef int at
        for at in range(self.slot_count):
            drop_all(&self.slots[at], &self.slots[at].doomed)
            drop_all(&self.slots[at], &self.slots[at].old)
            drop_all(&self.slots[at], &self.slots[at].young)
        free(self.slots)
        if self.known != NULL:
            for at in range(KNOWN_KEYS):
                release_known(&self.known[at])
            free(self.known)

    def __len__(self):
        cdef int at
        cdef int64_t total = 0
        for at in range(self.slot_count):
            total += self.slots[at].young.used + self.slots[at].old.used + self.slots[at].doomed.used
        return total

    def counts(self):
        """Counters of the checks decided by prepared checks, per slot: rule name, allowed, refused, shadow refused."""
        return [
            (self.names[at], self.slots[at].allowed, self.slots[at].refused, self.slots[at].shadow_refused)
            for at in range(self.slot_count)
        ]

    def prepare_check(self, slots, rules, fallback):
        """The check of `rules`, whose quotas are in `slots`. `fallback` decides what is unusual."""
        return CompiledCheck(self, slots, rules, fallback)

    cdef Py_hash_t fetch_early(self, int which, PyObject* key) except -1:
        """Let the processor fetch the entry of `key` while the clock is read. Returns the key's hash."""
        cdef Table* young = &self.slots[which].young
        cdef Py_hash_t hashed = PyObject_Hash(<object>key)
        cdef Entry* entry
        if young.mask >= 0:
            entry = &young.entries[home_of(young, hashed)]
            frontrow_prefetch(entry)
            frontrow_prefetch(&entry.b)  # an entry may lie across two lines of the cache
        return hashed

    cdef PyObject* known_key(self, PyObject* name, PyObject* value) except? NULL:
        """A new reference to the store key of one part, or of a number or a UUID that is the whole key (`name` NULL).

        Making it and its hash costs more than deciding, so the last ones are kept. `NULL`: something is unusual.
        """
        cdef PyTypeObject* kind = Py_TYPE(value)
        cdef PyObject* same = value
        cdef KnownKey* entry
        cdef uint64_t mixed
        cdef object whole = None
        if not PyUnicode_CheckExact(<object>value) and not PyLong_CheckExact(<object>value):
            if <object>kind is not UUID_CLASS:
                return NULL
            whole = (<object>value).int
            if not PyLong_CheckExact(whole):
                return NULL
            same = <PyObject*>whole
        if self.known == NULL:
            self.known = <KnownKey*>calloc(KNOWN_KEYS, sizeof(KnownKey))
            if self.known == NULL:
                raise MemoryError()
        mixed = <uint64_t>PyObject_Hash(<object>same) ^ <uint64_t>name
        entry = &self.known[((mixed * <uint64_t>0x9E3779B97F4A7C15) >> 40) & (KNOWN_KEYS - 1)]
        if entry.kind == kind and entry.name == name:
            if entry.value == same or PyObject_RichCompareBool(entry.value, same, Py_EQ):
                return _new_reference(<object>entry.key)
        made = text_of_number(<object>value) if name == NULL else pack_part(<object>name, <object>value)
        if made is None:
            return NULL
        release_known(entry)
        if name != NULL:
            _new_reference(<object>name)
        entry.name, entry.kind = name, kind
        entry.value, entry.key = _new_reference(<object>same), _new_reference(made)
        return _new_reference(made)

    cdef int64_t read_clock(self) except? -1:
        if self.system_clock:
            return (frontrow_monotonic_ns() + self.offset_ns) / 1000
        return self.clock()

    def decide(self, request):
        """Charge every rule of `request` or none, in one step."""
        cdef PyObject* keys[MAX_RULES]
        cdef Py_hash_t hashes[MAX_RULES]
        cdef int which[MAX_RULES]
        cdef int64_t mask = 0
        cdef int at, count = len(request.slots)
        cdef int64_t now = self.read_clock() if request.now_us is None else request.now_us
        request_keys = request.keys
        request_slots = request.slots
        for at in range(count):
            keys[at] = PyTuple_GET_ITEM(request_keys, at)
            hashes[at] = PyObject_Hash(<object>keys[at])
            which[at] = request_slots[at]
        decision = self.decide_slots(count, which, keys, hashes, request.cost, now, request.op, &mask, False)
        shadowed = tuple([at for at in range(count) if mask >> at & 1]) if mask else ()
        return StoreResult(decision, shadowed)

    async def adecide(self, request):
        return self.decide(request)

    def close(self):
        """Nothing to close."""

    async def aclose(self):
        """Nothing to close."""

    cdef int find_state(self, QuotaSlot* slot, PyObject* key, Py_hash_t hashed, Verdict* v) except -1:
        """Fill in v.found, v.in_old, v.a and v.b."""
        v.in_old = False
        v.found = find(&slot.young, key, hashed)
        if v.found == NULL:
            v.found = find(&slot.old, key, hashed)
            v.in_old = v.found != NULL
        if v.found != NULL:
            v.a, v.b = v.found.a, v.found.b
        return 0

    cdef int write_state(self, QuotaSlot* slot, PyObject* key, Verdict* v, int64_t now) except -1:
        cdef Entry* entry
        if v.found != NULL and not v.in_old:
            v.found.a, v.found.b = v.a, v.b
            return 0
        if v.found == NULL and slot.young.used + slot.old.used + slot.doomed.used >= slot.max_keys:
            make_room(slot, now)
        entry = insert(&slot.young, <object>key)
        entry.a, entry.b = v.a, v.b
        if v.found != NULL:
            remove(&slot.old, v.found)
        return 0

    cdef object decide_slots(
        self,
        int count,
        int* which,
        PyObject** keys,
        Py_hash_t* hashes,
        int64_t cost,
        int64_t now,
        int op,
        int64_t* mask,
        bint counting,
    ):
        cdef Verdict verdicts[MAX_RULES]
        cdef int64_t before_a[MAX_RULES]
        cdef int64_t before_b[MAX_RULES]
        cdef bint refused = False
        cdef int at
        cdef QuotaSlot* slot
        cdef Verdict* v
        cdef bint seen
        for at in range(count):
            slot = &self.slots[which[at]]
            v = &verdicts[at]
            if op != PEEK_OP:  # a look ahead must not age the other keys
                advance_generation(slot, now)
            v.a = v.b = 0
            self.find_state(slot, keys[at], hashes[at], v)
            if op > PEEK_OP:
                if op == REFUND_OP:
                    self.return_units(slot, keys[at], v, now, cost)
                elif op == CHARGE_OP:
                    self.charge_units(slot, keys[at], v, now, cost)
                elif op == RESET_OP:
                    self.forget_state(slot, v)
                v.a = v.b = 0
                self.find_state(slot, keys[at], hashes[at], v)
            before_a[at], before_b[at] = v.a, v.b
            judge(slot, v.found != NULL, now, 1 if op > PEEK_OP else cost, v)
            if not v.allowed:
                if slot.shadow:
                    mask[0] |= 1 << at
                    if counting:
                        slot.shadow_refused += 1
                else:
                    refused = True
        for at in range(count):
            slot = &self.slots[which[at]]
            v = &verdicts[at]
            seen = v.found != NULL
            if op == CHECK_OP and v.write and not (refused and v.allowed):
                if slot.algorithm == LOG:
                    v.a = <int64_t>commit_log(slot, v, cost if v.allowed else 0)
                self.write_state(slot, keys[at], v, now)
            elif v.allowed:
                report_uncharged(slot, before_a[at], before_b[at], seen, now, v)
        return self.make_decision(count, which, verdicts, refused, counting)

    cdef int return_units(self, QuotaSlot* slot, PyObject* key, Verdict* v, int64_t now, int64_t cost) except -1:
        cdef int64_t prev, cur
        if v.found == NULL:
            return 0
        judge(slot, True, now, 0, v)
        if slot.algorithm == FIXED:
            v.b = v.b - cost if v.b > cost else 0
        elif slot.algorithm == COUNTER:
            prev, cur = v.b >> 32, v.b & LOW_HALF
            if cost > cur:
                prev = prev - (cost - cur) if prev > cost - cur else 0
            cur = cur - cost if cur > cost else 0
            v.b = prev << 32 | cur
        elif slot.algorithm == LOG:
            v.a = <int64_t>commit_log(slot, v, -cost)
        else:
            v.b = v.b - cost * slot.unit if v.b > cost * slot.unit else 0
        return self.write_state(slot, key, v, now)

    cdef int charge_units(self, QuotaSlot* slot, PyObject* key, Verdict* v, int64_t now, int64_t cost) except -1:
        """Charge units whether or not they fit. A window has no debt: it is used up at most."""
        cdef bint seen = v.found != NULL
        cdef int64_t a = v.a, b = v.b, owed
        judge(slot, seen, now, 0, v)
        if slot.algorithm == FIXED or slot.algorithm == COUNTER or slot.algorithm == LOG:
            cost = cost if cost < v.remaining else v.remaining
            v.a, v.b = a, b
            judge(slot, seen, now, cost, v)
            if slot.algorithm == LOG:
                v.a = <int64_t>commit_log(slot, v, cost)
        else:
            owed = v.b + cost * slot.unit
            owed = owed if owed < slot.most_owed else slot.most_owed
            v.b = owed if owed > v.b else v.b
            if v.b > slot.capacity * slot.unit and slot.turn < 2 * slot.life:
                slot.turn = 2 * slot.life  # this debt matters for longer than a life
        return self.write_state(slot, key, v, now)

    cdef int forget_state(self, QuotaSlot* slot, Verdict* v) except -1:
        if v.found != NULL:
            if slot.algorithm == LOG:
                release_ring(v.found.a)
            remove(&slot.old if v.in_old else &slot.young, v.found)
        return 0

    cdef object make_decision(self, int count, int* which, Verdict* verdicts, bint refused, bint counting):
        """One Decision from all verdicts: the refusal with the longest wait, or else the rule with the least left."""
        cdef int chosen = -1
        cdef int at
        cdef int64_t delay = 0
        cdef QuotaSlot* slot
        for at in range(count):
            slot = &self.slots[which[at]]
            if slot.shadow:
                continue
            if refused:
                if not verdicts[at].allowed and (chosen < 0 or verdicts[at].retry > verdicts[chosen].retry):
                    chosen = at
            else:
                if chosen < 0 or verdicts[at].remaining < verdicts[chosen].remaining:
                    chosen = at
                if verdicts[at].delay > delay:
                    delay = verdicts[at].delay
        cdef int64_t retry = 0
        if chosen < 0:
            chosen = 0
        else:
            retry = verdicts[chosen].retry
        if counting:
            if refused:
                self.slots[which[chosen]].refused += 1
            else:
                self.slots[which[chosen]].allowed += 1
        decision = frontrow_new_tuple(self.decision_class, 8)
        _set(decision, 0, False if refused else True)
        _set(decision, 1, <object>PyTuple_GET_ITEM(self.names, which[chosen]))
        _set(decision, 2, <object>PyTuple_GET_ITEM(self.limits, which[chosen]))
        _set(decision, 3, PyLong_FromLongLong(verdicts[chosen].remaining))
        _set(decision, 4, PyLong_FromLongLong(verdicts[chosen].reset))
        _set(decision, 5, PyLong_FromLongLong(retry) if retry else ZERO)
        _set(decision, 6, PyLong_FromLongLong(delay) if delay else ZERO)
        _set(decision, 7, STORE)
        return decision


cdef void release_known(KnownKey* entry) noexcept:
    cdef PyObject* name = entry.name
    cdef PyObject* value = entry.value
    cdef PyObject* key = entry.key
    entry.name = entry.value = entry.key = NULL
    entry.kind = NULL
    Py_XDECREF(name)
    Py_XDECREF(value)
    Py_XDECREF(key)


cdef object STORE = "store"
cdef object ZERO = 0
cdef object ONE = 1


cdef inline void _set(object decision, Py_ssize_t at, object value) noexcept:
    Py_INCREF(value)  # SET_ITEM takes over a reference
    PyTuple_SET_ITEM(decision, at, value)


# -- prepared checks ----------------------------------------------------------------------------------------------------

@cython.final
cdef class CompiledCheck:
    """`Limiter.check` for rules that are known beforehand. Makes the same keys as keys.rule_key.

    It decides a short string, a whole number of 64 bits, a UUID, or a plain dictionary of such parts. `fallback`
    decides the rest and raises the errors: other mappings, long keys, missing parts, costs that never fit.
    """

    cdef CompiledStore store
    cdef int count
    cdef int which[MAX_RULES]
    cdef int packed_by[MAX_RULES]  # the first rule that counts by the same parts, which has the same key
    cdef tuple parts  # per rule: None (the whole key), () (everybody) or its parts as (name, packed name)
    cdef bint takes_text
    cdef int64_t capacity  # the smallest of all rules
    cdef object everybody
    cdef object fallback

    def __cinit__(self, CompiledStore store, slots, rules, fallback):
        cdef int at
        self.store = store
        self.count = len(slots)
        self.everybody, self.fallback = GLOBAL_KEY, fallback
        self.parts = tuple(None if rule.per is None else tuple(map(_packed_name, rule.per)) for rule in rules)
        self.takes_text = not any(self.parts)
        self.capacity = 0x7FFFFFFF
        for at in range(self.count):
            self.which[at] = slots[at]
            self.packed_by[at] = self.parts.index(self.parts[at])
            self.capacity = min(self.capacity, store.slots[self.which[at]].capacity)

    def check(self, key, cost=1, now_us=None):
        """Charge `cost` to every rule, or to none if one of them refuses."""
        return self.decide(key, cost, now_us)

    def acheck(self, key, cost=1, now_us=None):
        """`check` for asyncio. It is made when it is awaited."""
        cdef AwaitableCheck due = AwaitableCheck.__new__(AwaitableCheck)
        due.prepared, due.key, due.cost, due.now_us = self, key, cost, now_us
        return due

    cdef object decide(self, key, cost, now_us):
        cdef PyObject* keys[MAX_RULES]
        cdef Py_hash_t hashes[MAX_RULES]
        cdef int64_t units, now, mask = 0
        cdef int at
        cdef PyObject* made
        if <PyObject*>cost == <PyObject*>ONE:
            units = 1
        elif type(cost) is int and 0 < cost <= self.capacity:
            units = cost
        else:
            return self.fallback(key, cost, now_us)
        if now_us is not None and (type(now_us) is not int or not 0 <= now_us < EXACT):
            return self.fallback(key, cost, now_us)
        if PyUnicode_CheckExact(key):
            text = key
        elif PyDict_CheckExact(key):
            return self.decide_parts(<dict>key, cost, now_us, units)
        else:
            made = self.store.known_key(NULL, <PyObject*>key)
            if made == NULL:
                return self.fallback(key, cost, now_us)
            text = <object>made
            Py_DECREF(text)  # the variable holds it
        if not self.takes_text or not 0 < PyUnicode_GET_LENGTH(text) <= MAX_KEY_CHARS:
            return self.fallback(key, cost, now_us)
        for at in range(self.count):
            if <object>PyTuple_GET_ITEM(self.parts, at) is None:
                keys[at] = <PyObject*>text
            else:
                keys[at] = <PyObject*>self.everybody
            hashes[at] = self.store.fetch_early(self.which[at], keys[at])
        now = self.store.read_clock() if now_us is None else now_us
        return self.store.decide_slots(self.count, self.which, keys, hashes, units, now, CHECK_OP, &mask, True)

    cdef object decide_parts(self, dict key, cost, now_us, int64_t units):
        cdef PyObject* keys[MAX_RULES]
        cdef Py_hash_t hashes[MAX_RULES]
        cdef int64_t now, mask = 0
        cdef int at, made = 0
        try:
            for at in range(self.count):
                keys[at] = self.pack(at, key, keys)
                made += 1
                if keys[at] == NULL:
                    return self.fallback(key, cost, now_us)
                hashes[at] = self.store.fetch_early(self.which[at], keys[at])
            now = self.store.read_clock() if now_us is None else now_us
            return self.store.decide_slots(self.count, self.which, keys, hashes, units, now, CHECK_OP, &mask, True)
        finally:
            for at in range(made):
                Py_XDECREF(keys[at])

    cdef PyObject* pack(self, int rule, dict key, PyObject** earlier) except? NULL:
        """A new reference to the rule's store key. `NULL` without an error: something in it is unusual."""
        cdef char packed[MAX_KEY_CHARS]
        cdef Py_ssize_t used = 0, head_size, at = 0
        cdef PyObject* name
        cdef PyObject* value
        cdef PyObject* of_rule = PyTuple_GET_ITEM(self.parts, rule)
        if self.packed_by[rule] < rule:
            return _new_reference(<object>earlier[self.packed_by[rule]])
        if <object>of_rule is None:
            if PyDict_Size(key) != 1:
                return pack_whole(key)
            PyDict_Next(key, &at, &name, &value)
            return self.store.known_key(name, value) if PyUnicode_CheckExact(<object>name) else NULL
        cdef tuple parts = <tuple>of_rule
        if PyTuple_GET_SIZE(parts) == 0:
            return _new_reference(self.everybody)
        for at in range(PyTuple_GET_SIZE(parts)):
            part = <tuple>PyTuple_GET_ITEM(parts, at)
            value = PyDict_GetItemWithError(key, <object>PyTuple_GET_ITEM(part, 0))
            if value == NULL:
                return NULL
            if PyTuple_GET_SIZE(parts) == 1:
                return self.store.known_key(PyTuple_GET_ITEM(part, 0), value)
            head = <object>PyTuple_GET_ITEM(part, 1)
            head_size = PyBytes_GET_SIZE(head)
            if used + head_size > MAX_KEY_CHARS:
                return NULL
            memcpy(packed + used, PyBytes_AS_STRING(head), head_size)
            used = pack_text(packed, used + head_size, <object>value)
            if used < 0:
                return NULL
        return _new_reference(PyBytes_FromStringAndSize(packed, used))


cdef object pack_part(object name, object value):
    """The store key of one part, or None if something in it is unusual."""
    cdef char packed[MAX_KEY_CHARS]
    cdef Py_ssize_t used = pack_text(packed, 0, name)
    if used > 0:
        used = pack_text(packed, used, value)
    return PyBytes_FromStringAndSize(packed, used) if used > 0 else None


cdef PyObject* pack_whole(dict key) except? NULL:
    """A new reference to the key of a mapping with all its parts, by name. `NULL`: something in it is unusual."""
    cdef char packed[MAX_KEY_CHARS]
    cdef PyObject* names[MAX_PARTS]
    cdef PyObject* values[MAX_PARTS]
    cdef PyObject* name
    cdef PyObject* value
    cdef Py_ssize_t count = 0, position = 0, used = 0, at
    if not 0 < PyDict_Size(key) <= MAX_PARTS:
        return NULL
    while PyDict_Next(key, &position, &name, &value):
        if not PyUnicode_CheckExact(<object>name):
            return NULL
        at = count
        while at > 0 and PyUnicode_Compare(names[at - 1], name) > 0:
            names[at], values[at] = names[at - 1], values[at - 1]
            at -= 1
        names[at], values[at] = name, value
        count += 1
    for at in range(count):
        if PyUnicode_GET_LENGTH(<object>names[at]) == 0:
            return NULL
        used = pack_text(packed, used, <object>names[at])
        if used >= 0:
            used = pack_text(packed, used, <object>values[at])
        if used < 0:
            return NULL
    return _new_reference(PyBytes_FromStringAndSize(packed, used))


cdef Py_ssize_t pack_text(char* packed, Py_ssize_t used, object value) except -2:
    """Append the length and the text of a part. Returns the length so far, or -1 if the part is unusual or too long."""
    cdef char number[UUID_CHARS]
    cdef const char* text
    cdef Py_ssize_t size
    if PyUnicode_CheckExact(value):
        text = PyUnicode_AsUTF8AndSize(value, &size)
        if text == NULL:  # a lone surrogate
            PyErr_Clear()
            return -1
    else:
        size = write_number(number, value)
        text = number
    if size <= 0 or used + 4 + size > MAX_KEY_CHARS:  # 4: up to three digits and a colon
        return -1
    used += _write_length(packed + used, size)
    memcpy(packed + used, text, size)
    return used + size


cdef object text_of_number(object value):
    """The text of a whole number or a UUID, or None."""
    cdef char number[UUID_CHARS]
    cdef Py_ssize_t size = write_number(number, value)
    return PyUnicode_DecodeLatin1(number, size, NULL) if size > 0 else None


cdef const char* HEX = b"0123456789abcdef"
cdef object UUID_CLASS = UUID


cdef Py_ssize_t write_number(char* to, object value) except -1:
    """Write a whole number of 64 bits or a UUID as `str` does. Returns its length, or 0 for anything else."""
    cdef int overflow = 0
    cdef long long number
    if PyLong_CheckExact(value):
        number = PyLong_AsLongLongAndOverflow(value, &overflow)
        return 0 if overflow else write_decimal(to, number)
    if type(value) is not UUID_CLASS:
        return 0
    whole = value.int
    if not PyLong_CheckExact(whole):
        return 0
    cdef unsigned long long high = PyLong_AsUnsignedLongLongMask(whole >> 64)
    cdef unsigned long long low = PyLong_AsUnsignedLongLongMask(whole)
    cdef int at, place = 0
    for at in range(32):
        if at == 8 or at == 12 or at == 16 or at == 20:
            to[place] = 45
            place += 1
        to[place] = HEX[((high if at < 16 else low) >> (4 * (15 - (at & 15)))) & 15]
        place += 1
    return UUID_CHARS


cdef Py_ssize_t write_decimal(char* to, long long number) noexcept nogil:
    cdef char digits[20]
    cdef unsigned long long left = <unsigned long long>number
    cdef Py_ssize_t count = 0, at = 0
    if number < 0:
        left = 0 - left
        to[0] = 45
        at = 1
    while True:
        digits[count] = <char>(48 + left % 10)
        count += 1
        left = left / 10
        if left == 0:
            break
    while count > 0:
        count -= 1
        to[at] = digits[count]
        at += 1
    return at


def _packed_name(name):
    raw = name.encode("utf-8", "surrogatepass")
    return name, b"%d:%b" % (len(raw), raw)


cdef inline PyObject* _new_reference(object value) noexcept:
    Py_INCREF(value)
    return <PyObject*>value


cdef inline Py_ssize_t _write_length(char* to, Py_ssize_t length) noexcept nogil:
    """Write a number below 1,000 and a colon. Returns how many characters that took."""
    cdef Py_ssize_t digits = 1 if length < 10 else 2 if length < 100 else 3
    cdef Py_ssize_t at
    for at in range(digits - 1, -1, -1):
        to[at] = <char>(48 + length % 10)
        length = length / 10
    to[digits] = 58
    return digits + 1


@cython.final
@cython.no_gc
@cython.freelist(64)
cdef class AwaitableCheck:
    """What `acheck` returns: a coroutine object without a frame. It decides when awaited and never waits.

    It has the methods of `collections.abc.Coroutine`, so `asyncio.create_task`, `gather`, `wait_for` and `run` take it.
    """

    cdef CompiledCheck prepared
    cdef object key
    cdef object cost
    cdef object now_us
    cdef bint done

    cdef object finish(self):
        if self.done:
            raise RuntimeError("cannot reuse already awaited coroutine")
        self.done = True
        return self.prepared.decide(self.key, self.cost, self.now_us)

    def __await__(self):
        return self

    def __bool__(self):
        """Refuse `if limiter.acheck(key):`, where the object belongs to nobody else.

        A task that holds it may ask too: `repr(task)` does so from Python 3.12 on.
        """
        if Py_REFCNT(self) > 1:
            return True
        self.done = True
        raise TypeError("acheck(…) has not been awaited, so it is no decision yet; write: await limiter.acheck(…)")

    def __iter__(self):
        return self

    def __next__(self):
        raise StopIteration(self.finish())

    def send(self, value):
        raise StopIteration(self.finish())

    def throw(self, kind, value=None, traceback=None):
        self.done = True
        error = value if value is not None else kind() if isinstance(kind, type) else kind
        raise error.with_traceback(traceback) if traceback is not None else error

    def close(self):
        self.done = True

    def __dealloc__(self):
        if not self.done:
            frontrow_warn_never_awaited()


cdef int _send(object due, object value, PyObject** result) except -1:
    result[0] = _new_reference((<AwaitableCheck>due).finish())
    return 0  # PYGEN_RETURN


frontrow_set_send(AwaitableCheck, _send)
