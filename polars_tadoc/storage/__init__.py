"""Files: local paths, object stores and open files; atomic writes."""
