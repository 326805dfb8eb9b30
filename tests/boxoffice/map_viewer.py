"""A viewer of the live seat map, for tests: it applies snapshots and frames by the rules that the page follows."""

from frontrow.boxoffice.seats.map.map_ring import MapRing
from frontrow.boxoffice.seats.model.map_format import decode_changes, read_frame, read_snapshot


class Viewer:
    """The client's rules, as the page follows them."""

    def __init__(self, snapshot: bytes, seats: int) -> None:
        self.seats, self.fetched = seats, 0
        self.fetch(snapshot)

    def fetch(self, snapshot: bytes) -> None:
        begin = read_snapshot(snapshot, self.seats)
        self.states, self.seq, self.epoch = bytearray(begin.states), begin.seq, begin.epoch
        self.fetched += 1

    def take(self, stream: bytes, ring: MapRing) -> None:
        for event in stream.decode().split("\n\n")[:-1]:
            fields = dict(line.split(": ", 1) for line in event.split("\n") if ": " in line)
            if fields["event"] == "reset":
                self.fetch(ring.snapshot())
            elif fields["event"] == "d":
                frame = read_frame(fields["data"])
                if (frame.epoch, frame.prev) == (self.epoch, self.seq):
                    for index, state in decode_changes(frame.body, self.seats).items():
                        self.states[index] = state
                    self.seq = frame.seq
                elif frame.epoch != self.epoch or frame.seq > self.seq:
                    self.fetch(ring.snapshot())
