"""The query language: what people type, read as a tree."""
