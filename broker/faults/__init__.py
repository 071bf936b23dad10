"""Faults on demand, for tests of clients: what a broker does wrong because somebody asked for it.

Loaded by a broker that is started with `kavka.faults.enable`, or is given a `FaultControl`; no other imports any of it.

    control.py          FaultControl: the door for Python; what can be asked for
    door.py             the same over HTTP (door_requests.py: what it takes)
    fault.py            Fault: one of them, with its hits; the handle that clears it
    target.py           which requests it hits; named_partitions.py: which partitions a request names
    actions.py          what becomes of a request that was hit; held.py: those that wait
    error_answers.py    an answer with an error in its right places, for each API and version
    hooked_broker.py    one broker, hooked: handlers, sessions and files with the faults before them
    full_disk.py        files on a disk that is full
    leaderships.py      leaders that move, coordinators that are lost
"""
