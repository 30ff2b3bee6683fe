"""The control plane for tests: start it, talk to it, run the suite against it.

Python 3.11, standard library only. `plane` starts and stops the components, `api` talks to the
API server, `cluster` and `controller` are what tests use, `manifests` makes objects, and `runner`
runs the tests.
"""
