"""A second role, as CONTRIBUTING says: its list of functions, its role file, its workflow."""
