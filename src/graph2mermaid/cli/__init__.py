"""The command line. Each command is thin: it reads what was typed, and others do the work."""
