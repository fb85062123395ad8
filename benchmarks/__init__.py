"""Benchmarks: each module runs on its own, ``python -m benchmarks.word_count`` and so on."""
