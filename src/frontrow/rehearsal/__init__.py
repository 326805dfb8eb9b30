"""Rehearsals of a sale: a crowd of simulated fans, and a checker of what they were told."""
