"""OpenAPI documents, and the tools that they describe."""
