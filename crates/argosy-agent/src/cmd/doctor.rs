//! `argosy-agent doctor`: Says what can be seen here, what cannot, and why.
