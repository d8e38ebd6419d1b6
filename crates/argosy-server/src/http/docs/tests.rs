use super::*;

#[test]
fn every_link_on_the_page_leads_somewhere_on_it() {
    let html = render();
    for target in html.split("href=\"#").skip(1).filter_map(|rest| rest.split('"').next()) {
        assert!(html.contains(&format!("id=\"{target}\"")), "#{target}");
    }
}

#[test]
fn the_page_loads_nothing() {
    let html = render();
    for word in ["<script", "src=", "<link", "url(", "@import"] {
        assert!(!html.contains(word), "{word}");
    }
}

#[test]
fn text_is_text_and_backticks_are_code() {
    assert_eq!(prose("a `b` <c> `d"), "a <code>b</code> &lt;c&gt; <code>d</code>");
}
