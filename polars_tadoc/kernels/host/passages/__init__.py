"""Windows of words: their first occurrences and counts, and the passages that they cover."""
