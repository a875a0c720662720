"""The paper's tables re-run: `python -m paper`.  Imports sfumato; sfumato never imports this."""
