"""The virtual waiting room: signed places, a sliding window, passes. It also works alone in front of any shop."""
