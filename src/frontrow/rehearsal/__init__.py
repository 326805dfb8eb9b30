"""Rehearsals: private servers, simulated sales and storms."""
