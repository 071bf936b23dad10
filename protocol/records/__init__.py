"""Record batches: what a topic's log is made of, from message format 0 to 2.

    batch.py        the v2 batch: header, CRC, patching in place, records, builder
    legacy.py       message sets of magic 0 and 1, and conversion between all three formats
    compression.py  the codecs, each with a bound on what it may unpack

Nothing here does I/O, keeps state between calls or trusts a byte that it reads.
"""
