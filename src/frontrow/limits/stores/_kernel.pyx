# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The in-process store, compiled: the same algorithms as algorithms.py over open-addressing tables of 24-byte entries.

Exact under threads without a lock of its own: from reading a state to writing it nothing here allocates a
garbage-collected object or calls Python code, so the interpreter's lock is never let go in between. The clock is asked
before, the Decision is made after. Idle keys leave in generations, as in tables.py.
"""

from cpython.bytes cimport PyBytes_CheckExact
from cpython.long cimport PyLong_FromLongLong
from cpython.object cimport PyObject, PyTypeObject
from cpython.ref cimport Py_DECREF, Py_INCREF, Py_XDECREF
from cpython.tuple cimport PyTuple_GET_ITEM, PyTuple_SET_ITEM
from cpython.unicode cimport PyUnicode_CheckExact, PyUnicode_GET_LENGTH
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free, malloc, realloc

cdef extern from "Python.h":
    Py_hash_t PyObject_Hash(object) except -1
    int PyObject_RichCompareBool(PyObject*, PyObject*, int) except -1
    ctypedef object (*allocfunc)(PyTypeObject*, Py_ssize_t)
    int Py_EQ

cdef extern from *:
    """
    #include <time.h>
    #include <stdint.h>
    static int64_t frontrow_monotonic_ns(void) {
        struct timespec now;
        clock_gettime(CLOCK_MONOTONIC, &now);
        return (int64_t)now.tv_sec * 1000000000LL + now.tv_nsec;
    }
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
        return memory == MAP_FAILED ? NULL : memory;
    }
    static void frontrow_free(void *memory, size_t bytes) {
        if (memory == NULL) return;
        if (bytes < FRONTROW_LARGE) free(memory); else munmap(memory, bytes);
    }
    #endif
    static PyObject *frontrow_new_tuple(PyObject *kind, Py_ssize_t size) {
        return ((PyTypeObject *)kind)->tp_alloc((PyTypeObject *)kind, size);
    }
    """
    int64_t frontrow_monotonic_ns()
    void* frontrow_zeroed(size_t size)
    void frontrow_free(void* memory, size_t size)
    object frontrow_new_tuple(object kind, Py_ssize_t size)

from frontrow.core.clock import SystemClock
from frontrow.limits.quota import ALGORITHMS, Decision
from frontrow.limits.stores.protocol import Answer

DEF CHECK_OP = 0
DEF PEEK_OP = 1
DEF REFUND_OP = 2
DEF MAX_RULES = 32
DEF CRUMBS = 32
DEF SCAN = 512
DEF MAX_KEY_CHARS = 256
DEF FIXED = 0
DEF LOG = 1
DEF COUNTER = 2
DEF QUEUE = 5

cdef struct Ring:  # times of one key's log, oldest first from head
    int64_t* times
    int64_t size
    int64_t head
    int64_t count

cdef struct Entry:
    PyObject* key
    int64_t a
    int64_t b

cdef struct Slots:
    Entry* entries
    int64_t mask  # size - 1; -1 when there is no table yet
    int64_t used
    int64_t cursor

cdef struct Line:
    int algorithm
    bint shadow
    int64_t limit
    int64_t period
    int64_t grain
    int64_t leak
    int64_t unit
    int64_t capacity
    int64_t life
    int64_t max_keys
    int64_t overflow
    Slots young
    Slots old
    Slots doomed
    int64_t turn  # how often a generation turns: a life, or longer
    int64_t turn_at
    bint turning
    int64_t live_old
    int64_t allowed
    int64_t refused
    int64_t shadow_refused

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

cdef inline Entry* slot_of(Slots* slots, PyObject* key, Py_hash_t hashed) except NULL:
    """The entry of `key`, or the empty entry where it would go."""
    cdef uint64_t mixed = <uint64_t>hashed * <uint64_t>0x9E3779B97F4A7C15
    cdef int64_t at = <int64_t>(mixed >> 20) & slots.mask
    cdef Entry* entry
    while True:  # ends: tables are never more than two thirds full
        entry = &slots.entries[at]
        if entry.key == NULL or entry.key == key:
            return entry
        if PyObject_Hash(<object>entry.key) == hashed and PyObject_RichCompareBool(entry.key, key, Py_EQ):
            return entry
        at = (at + 1) & slots.mask


cdef inline Entry* find(Slots* slots, PyObject* key, Py_hash_t hashed) except? NULL:
    if slots.used == 0:
        return NULL
    cdef Entry* entry = slot_of(slots, key, hashed)
    return NULL if entry.key == NULL else entry


cdef int grow(Slots* slots) except -1:
    cdef int64_t size = 64 if slots.mask < 0 else 2 * (slots.mask + 1)
    cdef Slots bigger
    cdef int64_t at
    bigger.entries = <Entry*>frontrow_zeroed(size * sizeof(Entry))
    if bigger.entries == NULL:
        raise MemoryError()
    bigger.mask = size - 1
    for at in range(slots.mask + 1):
        if slots.entries[at].key != NULL:
            slot_of(&bigger, slots.entries[at].key, PyObject_Hash(<object>slots.entries[at].key))[0] = slots.entries[at]
    frontrow_free(slots.entries, (slots.mask + 1) * sizeof(Entry))
    slots.entries = bigger.entries
    slots.mask = bigger.mask
    return 0


cdef Entry* insert(Slots* slots, object key) except NULL:
    if 3 * (slots.used + 1) > 2 * (slots.mask + 1):
        grow(slots)
    cdef Entry* entry = slot_of(slots, <PyObject*>key, PyObject_Hash(key))
    if entry.key == NULL:
        Py_INCREF(key)
        entry.key = <PyObject*>key
        slots.used += 1
    return entry


cdef void release_ring(int64_t address) noexcept:
    cdef Ring* ring = <Ring*>address
    if ring != NULL:
        free(ring.times)
        free(ring)


cdef void crumble(Line* line, int64_t keys, int64_t scan) noexcept:
    """Free up to `keys` doomed keys, looking at no more than `scan` slots."""
    cdef Slots* slots = &line.doomed
    cdef Entry* entry
    while scan > 0 and keys > 0 and slots.cursor <= slots.mask:
        entry = &slots.entries[slots.cursor]
        slots.cursor += 1
        scan -= 1
        if entry.key != NULL:
            if line.algorithm == LOG:
                release_ring(entry.a)
            Py_XDECREF(entry.key)
            entry.key = NULL
            slots.used -= 1
            keys -= 1
    if slots.cursor > slots.mask:
        clear(slots)


cdef void clear(Slots* slots) noexcept:
    frontrow_free(slots.entries, (slots.mask + 1) * sizeof(Entry))
    slots.entries = NULL
    slots.mask = -1
    slots.used = 0
    slots.cursor = 0


cdef void drop_all(Line* line, Slots* slots) noexcept:
    line.doomed = slots[0]
    line.doomed.cursor = 0
    crumble(line, slots.mask + 1, slots.mask + 1)
    clear(&line.doomed)


cdef inline void tick(Line* line, int64_t now) noexcept:
    if not line.turning or now < line.turn_at - 2 * line.turn:
        line.turning = True
        line.turn_at = now + line.turn
    elif now >= line.turn_at:
        line.turn_at = now + line.turn
        if line.doomed.mask >= 0:  # not crumbled in a whole life: few checks were made, so nobody waits long
            crumble(line, line.doomed.mask + 1, line.doomed.mask + 1)
        line.doomed = line.old
        line.doomed.cursor = 0
        line.old = line.young
        line.live_old = line.old.used
        line.young.entries = NULL
        line.young.mask = -1
        line.young.used = 0
    if line.doomed.mask >= 0:
        crumble(line, CRUMBS, SCAN)


# -- algorithms: the mirror of algorithms.py ---------------------------------------------------------------------------

cdef void judge_fixed(Line* q, bint known, int64_t now, int64_t cost, Verdict* v) noexcept:
    cdef int64_t start = now - floor_mod(now, q.period)
    cdef int64_t then = v.a if known else start
    cdef int64_t count = v.b if known else 0
    v.moved = then - start > q.period
    if then > start and not v.moved:
        start = then
        now = then
    elif then < start:
        count = 0
    v.reset = start + q.period - now
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


cdef inline int64_t counter_reset(Line* q, int64_t prev, int64_t cur, int64_t into) noexcept nogil:
    if cur > 0:
        return 2 * q.period - into
    return q.period - into if prev > 0 else 0


cdef void judge_counter(Line* q, bint known, int64_t now, int64_t cost, Verdict* v) noexcept:
    cdef int64_t start = now - floor_mod(now, q.period)
    cdef int64_t then = v.a if known else start
    cdef int64_t prev = v.b >> 32 if known else 0
    cdef int64_t cur = v.b & 0xFFFFFFFF if known else 0
    cdef int64_t width, into, left, room, opens
    v.moved = then - start > 2 * q.period
    if then > start and not v.moved:
        start = then
        now = then
    elif then < start:
        prev = cur if start - then == q.period else 0
        cur = 0
    width = q.period / q.grain
    into = (now - start) / q.grain
    left = floor_div(q.limit * width - prev * (width - into), width) - cur
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


cdef void judge_bucket(Line* q, bint known, int64_t now, int64_t cost, Verdict* v) noexcept:
    cdef int64_t full = q.capacity * q.unit
    cdef int64_t then = v.a if known else now
    cdef int64_t debt = v.b if known else 0
    cdef int64_t owed
    v.moved = then - now > q.life
    if then > now and not v.moved:
        now = then
    elif then < now:
        debt = 0 if now - then >= q.life else debt - (now - then) * q.leak
        if debt < 0:
            debt = 0
    owed = debt + cost * q.unit
    v.allowed = owed <= full
    v.retry = 0
    if v.allowed:
        v.delay = ceil_div(debt, q.leak) if q.algorithm == QUEUE else 0
        debt = owed
    else:
        v.retry = ceil_div(owed - full, q.leak)
    v.remaining = (full - debt) / q.unit
    v.reset = ceil_div(debt, q.leak)
    v.a = now
    v.b = debt


cdef inline int64_t time_at(Ring* ring, int64_t index) noexcept nogil:
    cdef int64_t at = ring.head + index
    return ring.times[at - ring.size if at >= ring.size else at]


cdef void judge_log(Line* q, bint known, int64_t now, int64_t cost, Verdict* v) noexcept:
    """v.a stays the ring's address; v.b becomes how many of its oldest times have left the window."""
    cdef Ring* ring = <Ring*>v.a if known else NULL
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


cdef Ring* commit_log(Line* q, Verdict* v, int64_t added) except NULL:
    """Drop what left the window, add `added` times (or remove that many of the newest when negative)."""
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


cdef inline void judge(Line* q, bint known, int64_t now, int64_t cost, Verdict* v) noexcept:
    v.delay = 0
    v.now = now
    if q.algorithm == FIXED:
        judge_fixed(q, known, now, cost, v)
    elif q.algorithm == LOG:
        judge_log(q, known, now, cost, v)
    elif q.algorithm == COUNTER:
        judge_counter(q, known, now, cost, v)
    else:
        judge_bucket(q, known, now, cost, v)
    v.write = v.allowed or v.moved


cdef void tell_uncharged(Line* q, int64_t a, int64_t b, bint known, int64_t now, Verdict* v) noexcept:
    """Replace an allowed verdict's figures by those of the state as it stands."""
    cdef Verdict as_is
    as_is.a = a
    as_is.b = b
    judge(q, known, now, 0, &as_is)
    v.remaining = as_is.remaining
    v.reset = as_is.reset


# -- the store ---------------------------------------------------------------------------------------------------------

cdef class CompiledStore:
    """Exact under any number of threads; holds at most `max_keys` keys per quota."""

    cdef Line* lines
    cdef int line_count
    cdef object clock
    cdef int64_t offset_ns
    cdef bint system_clock
    cdef tuple names
    cdef tuple limits
    cdef tuple overflow_keys
    cdef object decision_class
    cdef object _unusual
    cdef readonly object tag_parts

    def __cinit__(self, lines, clock, int64_t max_keys, int64_t keep_idle_us=0):
        cdef int at
        cdef Line* line
        self.tag_parts = None
        self.line_count = len(lines)
        self.lines = <Line*>calloc(self.line_count, sizeof(Line))
        if self.lines == NULL:
            raise MemoryError()
        self.clock = clock
        self.system_clock = type(clock) is SystemClock
        if self.system_clock:
            self.offset_ns = clock.offset_ns
        slots = min(1024, max(1, max_keys // 16))
        self.overflow_keys = tuple(b"~%d" % n for n in range(slots))
        for at in range(self.line_count):
            quota = lines[at].quota
            line = &self.lines[at]
            line.algorithm = ALGORITHMS.index(quota.algorithm)
            line.shadow = lines[at].rule.shadow
            line.limit, line.period, line.grain = quota.limit, quota.period_us, quota.grain_us
            line.leak, line.unit = quota.drip if quota.is_bucket else (1, 1)
            line.capacity, line.life = quota.capacity, quota.life_us
            line.max_keys, line.overflow = max_keys - slots, slots
            line.turn = max(line.life, keep_idle_us)
            line.young.mask = line.old.mask = line.doomed.mask = -1
        self.names = tuple(line.rule.name for line in lines)
        self.limits = tuple(line.quota.capacity for line in lines)
        self.decision_class = Decision

    def __dealloc__(self):
        cdef int at
        for at in range(self.line_count):
            drop_all(&self.lines[at], &self.lines[at].doomed)
            drop_all(&self.lines[at], &self.lines[at].old)
            drop_all(&self.lines[at], &self.lines[at].young)
        free(self.lines)

    def __len__(self):
        cdef int at
        cdef int64_t total = 0
        for at in range(self.line_count):
            total += self.lines[at].young.used + self.lines[at].live_old + self.lines[at].doomed.used
        return total

    def counts(self):
        """Per line: rule name, allowed, refused, shadow refused, of checks answered by `check`."""
        return [
            (self.names[at], self.lines[at].allowed, self.lines[at].refused, self.lines[at].shadow_refused)
            for at in range(self.line_count)
        ]

    def on_unusual(self, unusual):
        """Who answers `check` when the key is no short string or the cost is unusual."""
        self._unusual = unusual

    def check(self, key, cost=1, now_us=None):
        """Charge `cost` to every rule, or to none of them, and say which it was."""
        cdef int64_t now, units
        if not PyUnicode_CheckExact(key) or not 0 < PyUnicode_GET_LENGTH(key) <= MAX_KEY_CHARS or type(cost) is not int:
            return self._unusual(key, cost, now_us)
        if not 0 < cost <= 0x7FFFFFFF:
            return self._unusual(key, cost, now_us)
        units = cost
        cdef int at
        for at in range(self.line_count):
            if units > self.lines[at].capacity:
                return self._unusual(key, cost, now_us)
        if now_us is not None:
            now = now_us
        elif self.system_clock:
            now = (frontrow_monotonic_ns() + self.offset_ns) / 1000
        else:
            now = self.clock()
        cdef PyObject* keys[MAX_RULES]
        cdef int which[MAX_RULES]
        cdef int64_t mask = 0
        for at in range(self.line_count):
            keys[at] = <PyObject*>key
            which[at] = at
        return self.settle(self.line_count, which, keys, units, now, CHECK_OP, &mask, True)

    def decide(self, ask):
        """Charge every rule of `ask` or none, in one step."""
        cdef PyObject* keys[MAX_RULES]
        cdef int which[MAX_RULES]
        cdef int64_t now, mask = 0
        cdef int at, count = len(ask.lines)
        if ask.now_us is not None:
            now = ask.now_us
        elif self.system_clock:
            now = (frontrow_monotonic_ns() + self.offset_ns) / 1000
        else:
            now = self.clock()
        asked_keys = ask.keys
        asked_lines = ask.lines
        for at in range(count):
            keys[at] = PyTuple_GET_ITEM(asked_keys, at)
            which[at] = asked_lines[at]
        decision = self.settle(count, which, keys, ask.cost, now, ask.op, &mask, False)
        shadowed = tuple([at for at in range(count) if mask >> at & 1]) if mask else ()
        return Answer(decision, shadowed)

    async def adecide(self, ask):
        return self.decide(ask)

    def close(self):
        """Nothing to close."""

    async def aclose(self):
        """Nothing to close."""

    cdef PyObject* home(self, Line* line, PyObject* key, Verdict* v) except NULL:
        """Look `key` up; a new one at the cap gets its overflow slot. Fills v.found, v.in_old, v.a, v.b."""
        cdef Py_hash_t hashed = PyObject_Hash(<object>key)
        v.in_old = False
        v.found = find(&line.young, key, hashed)
        if v.found == NULL:
            v.found = find(&line.old, key, hashed)
            v.in_old = v.found != NULL
            if v.found != NULL and line.algorithm == LOG and v.found.a == 0:
                v.found = NULL  # its ring moved to the young table, which has since been turned away
        if v.found == NULL and line.young.used + line.live_old + line.doomed.used >= line.max_keys:
            if not PyBytes_CheckExact(<object>key) or (<bytes>key)[:1] != b"~":
                return self.home(line, PyTuple_GET_ITEM(self.overflow_keys, <uint64_t>hashed % <uint64_t>line.overflow), v)
        if v.found != NULL:
            v.a, v.b = v.found.a, v.found.b
        return key

    cdef int put(self, Line* line, PyObject* key, Verdict* v) except -1:
        cdef Entry* entry
        if v.found != NULL and not v.in_old:
            v.found.a, v.found.b = v.a, v.b
            return 0
        if v.found != NULL:
            line.live_old -= 1
            if line.algorithm == LOG:
                v.found.a = 0  # the ring has a new owner
        entry = insert(&line.young, <object>key)
        entry.a, entry.b = v.a, v.b
        return 0

    cdef object settle(
        self, int count, int* which, PyObject** keys, int64_t cost, int64_t now, int op, int64_t* mask, bint counting
    ):
        cdef Verdict verdicts[MAX_RULES]
        cdef PyObject* homes[MAX_RULES]
        cdef int64_t before_a[MAX_RULES]
        cdef int64_t before_b[MAX_RULES]
        cdef bint refused = False
        cdef int at
        cdef Line* line
        cdef Verdict* v
        cdef bint known
        for at in range(count):
            line = &self.lines[which[at]]
            v = &verdicts[at]
            tick(line, now)
            v.a = v.b = 0
            homes[at] = self.home(line, keys[at], v)
            if op == REFUND_OP:
                self.give_back(line, homes[at], v, now, cost)
                homes[at] = self.home(line, keys[at], v)
            before_a[at], before_b[at] = v.a, v.b
            judge(line, v.found != NULL, now, 1 if op == REFUND_OP else cost, v)
            if not v.allowed:
                if line.shadow:
                    mask[0] |= 1 << at
                    if counting:
                        line.shadow_refused += 1
                else:
                    refused = True
        for at in range(count):
            line = &self.lines[which[at]]
            v = &verdicts[at]
            known = v.found != NULL
            if op == CHECK_OP and v.write and not (refused and v.allowed):
                if line.algorithm == LOG:
                    v.a = <int64_t>commit_log(line, v, cost if v.allowed else 0)
                self.put(line, homes[at], v)
            elif v.allowed:
                tell_uncharged(line, before_a[at], before_b[at], known, now, v)
        return self.tell(count, which, verdicts, refused, counting)

    cdef int give_back(self, Line* line, PyObject* key, Verdict* v, int64_t now, int64_t cost) except -1:
        cdef int64_t prev, cur
        if v.found == NULL:
            return 0
        judge(line, True, now, 0, v)
        if line.algorithm == FIXED:
            v.b = v.b - cost if v.b > cost else 0
        elif line.algorithm == COUNTER:
            prev, cur = v.b >> 32, v.b & 0xFFFFFFFF
            if cost > cur:
                prev = prev - (cost - cur) if prev > cost - cur else 0
            cur = cur - cost if cur > cost else 0
            v.b = prev << 32 | cur
        elif line.algorithm == LOG:
            v.a = <int64_t>commit_log(line, v, -cost)
        else:
            v.b = v.b - cost * line.unit if v.b > cost * line.unit else 0
        return self.put(line, key, v)

    cdef object tell(self, int count, int* which, Verdict* verdicts, bint refused, bint counting):
        """One Decision of all verdicts: of those that refused the longest wait, else the least left."""
        cdef int chosen = -1
        cdef int at
        cdef int64_t delay = 0
        cdef Line* line
        for at in range(count):
            line = &self.lines[which[at]]
            if line.shadow:
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
                self.lines[which[chosen]].refused += 1
            else:
                self.lines[which[chosen]].allowed += 1
        decision = frontrow_new_tuple(self.decision_class, 8)
        _set(decision, 0, False if refused else True)
        _set(decision, 1, <object>PyTuple_GET_ITEM(self.names, which[chosen]))
        _set(decision, 2, <object>PyTuple_GET_ITEM(self.limits, which[chosen]))
        _set(decision, 3, PyLong_FromLongLong(verdicts[chosen].remaining))
        _set(decision, 4, PyLong_FromLongLong(verdicts[chosen].reset))
        _set(decision, 5, PyLong_FromLongLong(retry))
        _set(decision, 6, PyLong_FromLongLong(delay))
        _set(decision, 7, STORE)
        return decision


STORE = "store"


cdef inline void _set(object decision, Py_ssize_t at, object value):
    Py_INCREF(value)  # the tuple keeps what it is given
    PyTuple_SET_ITEM(decision, at, value)
