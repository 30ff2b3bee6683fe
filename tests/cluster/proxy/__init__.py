"""A proxy between the controller and the real API server that loses answers, stalls and breaks
streams, shows an older state, and lets a test kill the controller at an exact write.

relay.py      HTTP/1.1 over TLS on both sides; asks its rules at each request, answer and event
goaway.py     HTTP/2 over TLS, passed on frame by frame, with GOAWAY where a test wants it
requests.py   what a request is about
view.py       shows a controller one namespace and some nodes, as if they were the whole cluster
rules.py      the faults: those that are on until taken back, and plans that fire once
"""
