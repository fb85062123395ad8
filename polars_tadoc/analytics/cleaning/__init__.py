"""Repeated, shared and new passages of a column."""
