"""Checks of files of any origin before they are decoded: footers, page sizes, checksums."""
