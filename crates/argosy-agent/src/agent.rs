//! What an agent does next, decided from what happened and when. No clock, no disk, no network.
