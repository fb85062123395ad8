"""Prepares rows and rules for traversal, and chooses the direction: top-down from rows or bottom-up from words."""
