"""The agents: one role a file, models that answer for them, and the loop that ties them to measurement."""
