"""What the box office needs from the outside, as protocols. `adapters` implements them."""
