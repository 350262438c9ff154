"""Measurements that need the network but are not erasure metrics."""
