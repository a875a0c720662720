"""Tables, figures, the HTML report and run folders."""
