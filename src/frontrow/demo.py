"""`frontrow demo`: what there is to see, in the terminal."""


def demo() -> None:
    """Show the limiter at work."""
    print("frontrow demo: the limiter's demo comes with frontrow.limits")
