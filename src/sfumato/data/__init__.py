"""(secret, truth) pairs: tables in, Samples out."""
