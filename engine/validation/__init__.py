"""JSON Schema, for whoever has to check a document: parameters, outputs, manifests."""
