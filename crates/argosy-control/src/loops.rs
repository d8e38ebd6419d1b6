//! The loops: woken by the feed, they look again.
