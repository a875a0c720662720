"""One file per table engine, each thin: rows out of the engine as Arrow, answered, and back.

An engine is imported by its own file alone, which is imported when it is asked for.
"""
