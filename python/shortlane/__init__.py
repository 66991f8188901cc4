"""Size-based packet scheduling: simulate, replay, compare."""
