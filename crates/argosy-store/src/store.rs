//! To come.

/// To come.
#[derive(Debug)]
pub struct Options;
/// To come.
#[derive(Debug)]
pub struct Read;
/// To come.
#[derive(Debug)]
pub struct Store;
/// To come.
#[derive(Debug)]
pub struct Txn;
