"""Programs that run in the sandbox beside an app, on its Python (3.8 or newer) and the standard library.

We import none of them.
"""
