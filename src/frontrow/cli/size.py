"""`frontrow size`."""


def size() -> None:
    """Later."""
