"""Builds indexes, changes them, and writes them from plans."""
