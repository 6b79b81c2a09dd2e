"""The page of a store over time: is anything slower, since when, and what changed then."""
