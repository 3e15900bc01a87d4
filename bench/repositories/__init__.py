"""Public repositories, drawn by a rule: which of them become tools, without a model, and why the others do not."""
