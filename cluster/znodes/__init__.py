"""The nodes of the shared tree, one class each: where it is, how its data is written and read.

    /cluster/id                                 ClusterId
    /brokers/ids/ID                    (E)      BrokerInfo
    /brokers/seqid                              its version gives generated broker ids
    /brokers/topics/T                           TopicAssignment
    /brokers/topics/T/partitions/P/state        PartitionState
    /controller                        (E)      ControllerLease
    /controller_epoch                           ControllerEpoch
    /admin/delete_topics/T                      empty: a wish to delete
    /admin/reassign_partitions                  PartitionReassignments: wishes of old tools
    /admin/preferred_replica_election           PreferredElections: likewise
    /feature                                    FeatureLevels
    /config/KIND/NAME                           EntityConfig
    /config/changes/config_change_     (S)      ConfigChange
    /kafka-acl/TYPE/NAME, /kafka-acl-extended/prefixed/TYPE/NAME    AclNode
    /kafka-acl-changes/acl_changes_, /kafka-acl-extended-changes/acl_changes_  (S)  AclChange
    /isr_change_notification/isr_change_  (S)   IsrChange
    /log_dir_event_notification/log_dir_event_ (S)  LogDirEvent
    /latest_producer_id_block                   LatestProducerIdBlock
    /log_dirs_surveyed                          empty: a first start has looked for topics (Kavka's own)

The JSON is what Kafka 3.9 writes, key for key; older forms are read where brokers in the field still write them. Data
comes from outside: whatever it holds, decoding gives a value or raises ZnodeError.
"""

from typing import Final

PERSISTENT_PATHS: Final = (
    "/consumers",
    "/brokers/ids",
    "/brokers/topics",
    "/brokers/seqid",
    "/config/changes",
    "/config/topics",
    "/config/clients",
    "/config/users",
    "/config/brokers",
    "/config/ips",
    "/admin/delete_topics",
    "/isr_change_notification",
    "/log_dir_event_notification",
)
"""What every broker makes sure of at its start."""
