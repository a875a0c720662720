"""Small programs for those who release sfumato; not installed with it."""
