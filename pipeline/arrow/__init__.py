"""Records as Arrow columns, in the rows of Spark's own Kafka source.

rows.py       the columns, and record batches of what a consumer or the kernel found
cutting.py    byte fields cut out of what records lie in: one copy, by pyarrow
headers.py    records' headers as lists
"""
