use super::*;

#[test]
fn a_signature_is_the_one_of_standard_webhooks() {
    let secret = BASE64_STANDARD.decode("MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
    let signature = Secret::new(secret).unwrap().sign(
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        1_614_265_330,
        br#"{"test": 2432232314}"#,
    );
    assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
}

#[test]
fn a_secret_shows_itself_to_nobody_and_is_long_enough() {
    let shown = format!("{:?}", Secret::new(b"0123456789abcdef0123456789abcdef".to_vec()));
    assert_eq!(shown, "Ok(Secret(…))");
    assert_eq!(
        Secret::new(vec![7; 23]).unwrap_err().to_string(),
        "a webhook secret must have at least 24 bytes, this one has 23"
    );
}
