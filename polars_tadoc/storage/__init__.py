"""Places that are no paths of this machine: object stores by their addresses, and open files."""
