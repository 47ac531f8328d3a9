"""One module per command of ``astra``; each has ``register(app)`` and imports the heavy parts when it runs."""
