"""Command line programs of projects: their parsers read in the sandbox, and a tool for each of their commands."""
