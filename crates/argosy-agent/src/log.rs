//! Lines the kernel and its friends write, and the signals in them.
