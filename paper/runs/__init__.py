"""What is run: one module per table or figure; each writes JSON into docs/reproduction."""
