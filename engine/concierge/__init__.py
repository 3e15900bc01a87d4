"""Answers agents by rules, without a model: patterns recognise what their words ask for."""
