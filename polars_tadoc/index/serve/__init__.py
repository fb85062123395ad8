"""Serves streams of queries."""
