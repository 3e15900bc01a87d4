"""Removal of unused containers, environments, files, projects, tools and tasks."""
