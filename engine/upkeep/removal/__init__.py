"""Removal of what nobody needs any more: containers, environments, files, projects, tools, tasks."""
