"""The sink `join`: rows of two topics that belong together by columns and event time; or of a topic with a lake table.

    [[sinks]]                             # source: subscribe = "orders,payments"
    kind = "join"
    topic = "paid-orders"
    left = "orders"
    right = "payments"
    on = ["order_id"]
    time = "time"                         # the column of the event time
    within = "1h"                         # so far apart at most
    delay = "10m"                         # how late a row may be
    late_topic = "paid-orders-late"

    [[sinks]]
    kind = "join"
    topic = "visits-with-users"
    lake = "/srv/lake/users"
    on = ["user"]
    lake_columns = ["name", "country"]    # of each key's newest row
    how = "left"                          # or "inner": rows without a match are left out

See topic_join.py and lake_join.py.
"""

from collections.abc import Mapping

from kavka.pipeline.jobs.lake_join import LakeJoinSink
from kavka.pipeline.jobs.topic_join import TopicJoinSink
from kavka.pipeline.running.sink import Sink
from kavka.pipeline.running.tables import Table


def sink(settings: Mapping[str, object]) -> Sink:
    """The sink that a table of a job file describes. Raises SettingError."""
    table = Table(settings)
    made: Sink = LakeJoinSink(table) if table.has("lake") else TopicJoinSink(table)
    table.close()
    return made
