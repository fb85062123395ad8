"""The command line, ``tadoc``: each command is one call of the public interface on files."""
