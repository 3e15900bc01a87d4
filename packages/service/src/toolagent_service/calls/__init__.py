"""Rules of calls: values of actions, hosts and queues, rights in the sandbox."""
