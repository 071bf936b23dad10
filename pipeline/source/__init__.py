"""Spark's data source `kavka`: topics as rows, and rows to topics. `data_source.py` has its options.

data_source.py     what Spark makes of the format's name; all options
read_options.py    options checked; option_values.py what their values mean; write_options.py those of writing
subscription.py    which topics; offsets.py offsets and their JSON; choices.py where ranges begin and end
log_bounds.py      what is known of partitions' logs: broker_logs.py asks brokers, file_logs.py looks into directories
logs.py            which of the two
planning.py        ranges cut into tasks, batches held to limits; data_loss.py records that are gone
batch_reader.py    spark.read; filters.py what of a query's filters it makes use of; stream_reader.py spark.readStream
range_partition.py what a task is given; file_reading.py its rows from segment files
range_reading.py   its rows over TCP, by consumers that consumer_pool.py keeps
writing.py         df.write and df.writeStream, at least once
"""
