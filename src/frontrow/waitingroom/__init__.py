"""The virtual waiting room: signed places, a sliding window, passes. Usable alone in front of any shop."""
