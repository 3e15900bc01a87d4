"""The registry of tools: import and export of catalog files, versions, search."""
