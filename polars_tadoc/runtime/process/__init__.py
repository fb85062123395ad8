"""Threads of the process, its forks and its end."""
