"""External tables of tools: fetched, parsed, and kept in the catalog under their own name."""
