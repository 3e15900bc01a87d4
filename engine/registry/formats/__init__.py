"""The catalog's file formats (seeds 000 §8, 001 §2–§3): one module a file."""
