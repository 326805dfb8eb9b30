"""The pure core of the waiting room: admission, the sliding window, lanes, the draw. No I/O, no clock."""
