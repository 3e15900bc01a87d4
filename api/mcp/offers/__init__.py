"""Resources, prompts and completions, also those of registered servers."""
