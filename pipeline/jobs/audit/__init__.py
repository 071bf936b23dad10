"""A lake compared with the topics it was made from: what is missing, what is there twice, how far behind it is."""
