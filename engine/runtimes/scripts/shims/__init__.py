"""Programs that run inside the sandbox and call one function of a script.

They are files, never text that is put together.
"""
