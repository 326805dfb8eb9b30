"""The pages for gatekeepers."""
