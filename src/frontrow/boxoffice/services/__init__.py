"""Use cases of the box office: load, decide, save."""
