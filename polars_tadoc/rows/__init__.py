"""Calls that give one value for each row of a compressed column."""
