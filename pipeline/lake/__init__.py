"""A lake of Parquet files and the manifest that says which of them count: archive, compact, and a reader."""
