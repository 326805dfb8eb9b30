"""Pages with figures: the live sale, reports, exports and feeds."""
