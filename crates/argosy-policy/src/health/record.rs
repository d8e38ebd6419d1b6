//! A CEL map over one of our own values: members are looked up where they are, and nothing is copied.

use cel::ExecutionError;
use cel::common::traits::{Container, Indexer, Iterable, Iterator, Sizer};
use cel::common::types::{CelInt, CelString, MAP_TYPE, Type};
use cel::common::value::{CowVal, Val};
use std::fmt;

/// What can be shown as a record.
pub(crate) trait Members: Send + Sync {
    /// Every name it may have, in order.
    fn names(&self) -> &'static [CelString<'static>];

    /// What a name stands for; `None` if it is not there.
    fn member<'a>(&'a self, name: &str) -> Option<CowVal<'a, 'a>>;
}

/// A map with text for keys.
#[derive(Clone, Copy)]
pub(crate) struct Record<'a>(pub(crate) &'a (dyn Members + 'a));

impl<'a> Record<'a> {
    fn keys(self) -> impl std::iter::Iterator<Item = &'static CelString<'static>> + 'a {
        self.0.names().iter().filter(move |name| self.0.member(name.inner()).is_some())
    }
}

impl fmt::Debug for Record<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.keys().map(CelString::inner)).finish()
    }
}

impl Val for Record<'_> {
    fn get_type(&self) -> &Type {
        &MAP_TYPE
    }

    fn cel_type() -> &'static Type {
        &MAP_TYPE
    }

    fn as_container(&self) -> Option<&dyn Container> {
        Some(self)
    }

    fn as_indexer<'b, 'v>(&'b self) -> Option<&'b (dyn Indexer + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_iterable<'b, 'v>(&'b self) -> Option<&'b (dyn Iterable + 'v)>
    where
        Self: 'v,
    {
        Some(self)
    }

    fn as_sizer(&self) -> Option<&dyn Sizer> {
        Some(self)
    }

    fn clone_as_boxed<'v>(&self) -> Box<dyn Val + 'v>
    where
        Self: 'v,
    {
        Box::new(*self)
    }
}

impl Container for Record<'_> {
    fn contains(&self, key: &dyn Val) -> Result<bool, ExecutionError> {
        let name = key.downcast_ref::<CelString<'_>>();
        Ok(name.is_some_and(|name| self.0.member(name.inner()).is_some()))
    }
}

impl Indexer for Record<'_> {
    fn get<'b, 'v>(&'b self, key: &dyn Val) -> Result<CowVal<'b, 'v>, ExecutionError>
    where
        Self: 'v,
    {
        let Some(name) = key.downcast_ref::<CelString<'_>>() else {
            let got = key.get_type().name().to_owned();
            return Err(ExecutionError::UnexpectedType { got, want: "string".to_owned() });
        };
        let missing = || ExecutionError::no_such_key(name.inner());
        self.0.member(name.inner()).ok_or_else(missing)
    }

    fn steal<'v>(self: Box<Self>, key: &dyn Val) -> Result<Box<dyn Val + 'v>, ExecutionError>
    where
        Self: 'v,
    {
        (*self).get(key).map(CowVal::into_owned)
    }
}

impl Iterable for Record<'_> {
    fn iter<'b, 'v>(&'b self) -> Box<dyn Iterator<'b, 'v> + 'b>
    where
        Self: 'v,
    {
        Box::new(Keys(Box::new(self.keys())))
    }
}

struct Keys<'b>(Box<dyn std::iter::Iterator<Item = &'static CelString<'static>> + 'b>);

impl<'b, 'v> Iterator<'b, 'v> for Keys<'b> {
    fn next(&mut self) -> Option<&'b (dyn Val + 'v)> {
        self.0.next().map(|name| name as &(dyn Val + 'v))
    }
}

impl Sizer for Record<'_> {
    fn size(&self) -> CelInt {
        CelInt::from(i64::try_from(self.keys().count()).unwrap_or(i64::MAX))
    }
}
