"""Saves and loads indexes."""
