//! `argosy sim`, as people run it.

mod load;
