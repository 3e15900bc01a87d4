"""Validation of schemas, versions and tool files; needs the libraries of the extra `cli`."""
