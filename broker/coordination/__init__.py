"""The coordinators' place in the broker: their logs, leaderships, topics, and who may reach them."""
