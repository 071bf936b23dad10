"""Seeing inside: metrics, their page, gauges, log lines."""
