use super::{PRICES, list_price};

#[test]
fn prices_are_sorted_so_that_they_are_found() {
    assert!(PRICES.is_sorted_by(|a, b| a.0 < b.0));
    for (machine_type, price) in PRICES {
        assert_eq!(list_price("us-east-1", machine_type), Some(price));
        assert!(price.is_finite() && 0.0 < price);
    }
}

/// G19.
#[test]
fn a_price_that_nobody_looked_up_is_not_made_up() {
    assert_eq!(list_price("us-east-1", "p99.metal"), None);
    assert_eq!(list_price("eu-central-1", "p5.48xlarge"), None);
}
