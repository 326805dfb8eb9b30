"""The API for door staff: bundles, scans, lists."""
