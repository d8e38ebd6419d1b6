//! Diagnostics: a fixed list of typed tests of a GPU, run in a child process.
