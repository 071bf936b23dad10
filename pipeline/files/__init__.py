"""Partitions read from segment files on disk, a broker's or Apache Kafka's, beside the broker or without one.

    partition_reader.py   the records of a range of offsets
    bounds.py             where a partition begins and ends, when no broker is there to say so
    outcomes.py           which transactions were aborted, and which are open
    segments.py           a partition's segments: listed, found by offset, opened
    pieces.py             a file's batches, a piece at a time
    folders.py            which folder holds a partition
    errors.py             what can be wrong

Nothing here writes. Files are read by position, never mapped: what retention deletes, or a cleaner replaces, stays
readable for who has it open, and is found again by offset by who comes later.
"""
