"""How rows are written and converted, for several tables."""
