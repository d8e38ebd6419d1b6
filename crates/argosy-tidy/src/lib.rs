//! Tests of the code itself: nothing to call. The checks are in `tests/tidy/`.
