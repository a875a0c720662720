"""The exact optimum as arrays: which law leaks least within the budgets, and the proof that none
leaks less."""
