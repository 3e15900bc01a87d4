"""What lanes have to reach, beside what the calls show: slow calls, a service that is killed, two front doors."""
