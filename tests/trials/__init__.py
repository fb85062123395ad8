"""Field trials: whole jobs of users, through the public calls alone, each checked in an independent way.

``python -m tests.trials`` runs them on the whole corpora in ``../shared/corpora`` (or ``TADOC_CORPORA``), those that
are there; ``--small`` on ``examples/data``, as CI does.
"""
