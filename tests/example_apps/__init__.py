"""The examples, each started as its first lines say, and asked what they promise."""
