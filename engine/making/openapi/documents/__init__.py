"""OpenAPI documents, read within bounds."""
