"""Programs that run in the sandbox on the Python of a project, 3.8 or newer, with the standard library alone.

We import none of them.
"""
