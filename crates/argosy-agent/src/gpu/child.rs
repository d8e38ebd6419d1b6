//! The driver behind a wall: a child process asks it, and is given up when it does not answer.
