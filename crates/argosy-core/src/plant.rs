//! Mistakes that can be planted, to see that the simulator finds them.
//!
//! Each stands at one place in the product, where it asks `has`. In an optimised build the answer is a
//! constant, and nothing of a mistake is left in the program.

/// A mistake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bug {
    /// A machine that registers again takes its node back into service.
    RegistrationClearsCordon,
    /// An agent says that a drain is done when it begins it.
    DrainDoneTooSoon,
    /// After a purchase whose answer was lost, another machine is bought instead of looking for the first.
    DoublePurchase,
    /// A breaker that has been calm lets everything through at once that it held back.
    BreakerReplays,
    /// The silence of most of the fleet is held against every node of it.
    MassSilence,
    /// Others are bought for all nodes that are to be replaced at once, however many `maxUnavailable` allows.
    NoSurgeLimit,
    /// Nothing waits after the store lost history.
    NoRecovery,
}

impl Bug {
    /// All of them.
    pub const ALL: [Bug; 7] = [
        Bug::RegistrationClearsCordon,
        Bug::DrainDoneTooSoon,
        Bug::DoublePurchase,
        Bug::BreakerReplays,
        Bug::MassSilence,
        Bug::NoSurgeLimit,
        Bug::NoRecovery,
    ];
}

#[cfg(debug_assertions)]
std::thread_local! {
    static PLANTED: std::cell::Cell<Option<Bug>> = const { std::cell::Cell::new(None) };
}

/// Plants a mistake in what runs on this thread from now on; `None` removes it.
#[cfg(debug_assertions)]
pub fn plant(bug: Option<Bug>) {
    PLANTED.set(bug);
}

/// Whether a mistake is planted on this thread.
#[cfg(debug_assertions)]
pub fn has(bug: Bug) -> bool {
    PLANTED.get() == Some(bug)
}

/// Whether a mistake is planted: never, in an optimised build.
#[cfg(not(debug_assertions))]
pub const fn has(_: Bug) -> bool {
    false
}
