"""What is shown: tools, versions, tasks, files, and how the service is."""
