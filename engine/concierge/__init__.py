"""Answers agents by rules: what they want is recognised in their words, without a model."""
