"""The sandbox: isolates programs from the machine, from the service and from one another."""
