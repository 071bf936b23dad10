"""This broker's partitions: leaders and followers, the controller's orders, reads, what transactions' writes need."""
