"""Twig patterns: what users write, and what is filtered with it."""
