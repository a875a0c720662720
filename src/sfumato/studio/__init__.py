"""The studio: a local page on which a person brings data, sets a budget, watches a mechanism being
found and sees what it does.

serve.py     the server and its token           guard.py        who may ask: Host, Origin, size
app.py       the addresses it answers         handlers.py     what each question of the page gets
parse.py     values from the page, checked    messages.py     the library's sentences on the page
session.py   one page: its data, runs, jobs   jobs.py         a job in a process of its own
work.py      what such a process does         prove.py        the frontier behind the slider
dataset.py   data for the page                preview.py      where a mechanism sends a point
download.py  files to take away               attack_game.py  twenty rounds against a run
folder.py    what lies where, and for how long
static/      the page itself; plane.js is that of web/
"""
