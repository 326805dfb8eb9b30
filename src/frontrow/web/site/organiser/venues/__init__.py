"""Pages about venues and their plans."""
