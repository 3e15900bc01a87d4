"""Python projects of repositories, with what they depend on: which interpreter, which versions, and their own package installed."""
