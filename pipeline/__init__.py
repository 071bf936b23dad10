"""Topics to a lake and back, by Spark: a data source, and jobs that archive, aggregate, replay and audit."""
