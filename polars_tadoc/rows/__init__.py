"""Calls that return one value per row of a compressed column."""
