"""Shows and changes tools, versions, tasks and files, and shows the state of the service."""
