"""The console: the pages of a waiting room's owner, where the room is served alone."""
