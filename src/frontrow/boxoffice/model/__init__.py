"""The pure core of the box office: values and decisions, no input, output, clock or randomness."""
