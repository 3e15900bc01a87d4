"""What a model sees, and the providers of models."""
