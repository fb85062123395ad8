"""Builds indexes, changes them, and sinks them from plans."""
