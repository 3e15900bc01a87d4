"""What is offered besides tools: resources, prompts, completions, also those of registered servers."""
