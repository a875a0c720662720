"""What a user asks, answered with frozen values: solve and keep, measure, compare, certify, trade
off.  Nothing here makes a sentence or draws; `render` does."""
