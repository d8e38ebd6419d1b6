use super::name;

#[test]
fn a_token_is_not_named_like_the_control_plane() {
    for wrong in ["argosy", "Argosy", "argosy for ada"] {
        let said = name(wrong).unwrap_err();
        assert!(said.ends_with("choose another, for example argosy-bot"), "{wrong}: {said}");
    }
    assert_eq!(name("argosy-bot"), Ok("argosy-bot".to_owned()));
}
