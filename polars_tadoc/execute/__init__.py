"""Runs analytics: in memory, in lazy plans, in streams, in windows of rows."""
