"""Tools in service: started, stopped and sent to repair without a person."""
