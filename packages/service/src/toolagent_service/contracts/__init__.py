"""What steps of the service are given and give: pydantic models only. They are in the histories of workflows."""
