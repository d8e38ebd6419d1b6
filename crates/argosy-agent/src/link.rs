//! The line to the control plane: one stream, or single calls where a stream cannot be had.
