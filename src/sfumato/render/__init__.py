"""Values into text, HTML and figures: the only room with sentences."""
