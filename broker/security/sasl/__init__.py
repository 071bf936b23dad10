"""Who a client is: SASL's server side. A table of states, and one machine for each mechanism, without sockets."""
