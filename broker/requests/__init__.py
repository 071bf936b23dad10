"""Requests on their way: the queue, the threads that run them, what repeats prepared, the dispatcher."""
