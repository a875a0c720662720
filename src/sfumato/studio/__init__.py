"""The studio: a local page on which a person brings data, sets a budget, watches a mechanism being
found and sees what it does.

app.py       what the page may ask for        guard.py   who may ask: token, Host, Origin, size
session.py   one page: its data, runs, jobs   jobs.py    a job in a process of its own
work.py      what such a process does         prove.py   the frontier behind the slider
desk.py      data for the page                look.py    where a mechanism sends a point
guess.py     twenty rounds against a run      take.py    files and the command line that repeats a
run static/      the page itself
"""
