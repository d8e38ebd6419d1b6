//! Whole worlds: the product runs, and what must never be is not.

mod absence;
mod chaos;
mod kit;
mod planted;
mod small;
