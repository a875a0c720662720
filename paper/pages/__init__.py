"""What is shown: pages and figures of docs/reproduction, made from the JSON of the runs."""
