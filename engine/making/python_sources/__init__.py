"""What the files of a Python project say, read without importing any of them."""
