//! Commands that were begun and how they ended, on disk: so that none takes effect twice.
