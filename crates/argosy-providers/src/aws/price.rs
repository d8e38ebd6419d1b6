//! What GPU machines cost by the hour, on demand.
//!
//! List prices of Linux in the three regions where AWS asks the least, as AWS has published them since June
//! 2025, in US dollars. They are for choosing and for the cost guard, not for the books: what an account pays is
//! between it and AWS (`Settings::prices` says otherwise), and AWS's price list has an API of its own.

/// Where the prices hold.
const REGIONS: [&str; 3] = ["us-east-1", "us-east-2", "us-west-2"];

/// Machine types and their prices, sorted.
const PRICES: [(&str, f64); 44] = [
    ("g4dn.12xlarge", 3.912),
    ("g4dn.16xlarge", 4.352),
    ("g4dn.2xlarge", 0.752),
    ("g4dn.4xlarge", 1.204),
    ("g4dn.8xlarge", 2.176),
    ("g4dn.metal", 7.824),
    ("g4dn.xlarge", 0.526),
    ("g5.12xlarge", 5.672),
    ("g5.16xlarge", 4.096),
    ("g5.24xlarge", 8.144),
    ("g5.2xlarge", 1.212),
    ("g5.48xlarge", 16.288),
    ("g5.4xlarge", 1.624),
    ("g5.8xlarge", 2.448),
    ("g5.xlarge", 1.006),
    ("g6.12xlarge", 4.6016),
    ("g6.16xlarge", 3.3968),
    ("g6.24xlarge", 6.6752),
    ("g6.2xlarge", 0.9776),
    ("g6.48xlarge", 13.3504),
    ("g6.4xlarge", 1.3232),
    ("g6.8xlarge", 2.0144),
    ("g6.xlarge", 0.8048),
    ("g6e.12xlarge", 10.49264),
    ("g6e.16xlarge", 7.57719),
    ("g6e.24xlarge", 15.06559),
    ("g6e.2xlarge", 2.24208),
    ("g6e.48xlarge", 30.13118),
    ("g6e.4xlarge", 3.00424),
    ("g6e.8xlarge", 4.52856),
    ("g6e.xlarge", 1.861),
    ("p3.16xlarge", 24.48),
    ("p3.2xlarge", 3.06),
    ("p3.8xlarge", 12.24),
    ("p3dn.24xlarge", 31.212),
    ("p4d.24xlarge", 21.957642),
    ("p4de.24xlarge", 27.44705),
    ("p5.48xlarge", 55.04),
    ("p5.4xlarge", 6.88),
    ("p5en.48xlarge", 63.296),
    ("p6-b200.48xlarge", 113.9328),
    ("t3.large", 0.0832),
    ("t3.medium", 0.0416),
    ("t3.micro", 0.0104),
];

/// The list price, if we know it.
pub(super) fn list_price(region: &str, machine_type: &str) -> Option<f64> {
    if !REGIONS.contains(&region) {
        return None;
    }
    let at = PRICES.binary_search_by(|(known, _)| (*known).cmp(machine_type)).ok()?;
    PRICES.get(at).map(|(_, price)| *price)
}

#[cfg(test)]
mod tests;
