"""Records as Arrow columns, in the rows of Spark's own Kafka source.

rows.py             the columns, and record batches of what a consumer got
decoding.py         record batches of a log's bytes: a range of offsets, piece by piece
batch_kernels.py    compiled: the walks over batch headers
record_kernels.py   compiled: the walks over records, and over their headers
walking.py          what both have of one another
compiling.py        numba, and where it keeps what it compiled
views.py            fields that were found, copied by pyarrow
found.py            room for what the kernel finds, and its columns
headers.py          records' headers as lists
messages.py         the old formats, one by one
plain_values.py     columns as values of Python, whatever they hold
"""
