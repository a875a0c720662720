"""What is run: one module per table or figure of the paper, each writes JSON to docs/reproduction."""
