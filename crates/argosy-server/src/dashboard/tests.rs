use super::*;

const ASSETS: &[Asset] = &[
    Asset {
        path: INDEX,
        media: "text/html; charset=utf-8",
        body: b"<html>",
        gzip: Some(b"\x1f\x8bpage"),
    },
    Asset { path: "assets/app-1a.js", media: "text/javascript", body: b"run()", gzip: None },
];

fn headers(of: &[(HeaderName, &'static str)]) -> HeaderMap {
    of.iter().map(|(name, value)| (name.clone(), HeaderValue::from_static(value))).collect()
}

fn ask(path: &str, of: &[(HeaderName, &'static str)]) -> Option<Response<Body>> {
    Dashboard::new(ASSETS).answer(&Method::GET, path, &headers(of))
}

fn header<'a>(response: &'a Response<Body>, name: &HeaderName) -> &'a str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[test]
fn each_path_gets_its_file_or_the_first_page() {
    let rows = [
        ("/ui", 200, "text/html; charset=utf-8"),
        ("/ui/", 200, "text/html; charset=utf-8"),
        ("/ui/nodes/gpu-17", 200, "text/html; charset=utf-8"),
        ("/ui/nodes/gpu-17.rack.example", 200, "text/html; charset=utf-8"),
        ("/ui/clusters/a/nodepools/b.c/", 200, "text/html; charset=utf-8"),
        ("/ui/assets/app-1a.js", 200, "text/javascript"),
        ("/ui/assets/app-0.js", 404, "text/html; charset=utf-8"),
        ("/ui/assets/../secret", 404, "text/html; charset=utf-8"),
        ("/ui/favicon.ico", 404, "text/html; charset=utf-8"),
    ];
    for (path, status, media) in rows {
        let response = ask(path, &[(ACCEPT, "text/html, */*;q=0.8")]).unwrap();
        assert_eq!(response.status().as_u16(), status, "{path}");
        assert_eq!(header(&response, &CONTENT_TYPE), media, "{path}");
        let policy = header(&response, &CONTENT_SECURITY_POLICY);
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self';"));
        assert!(!policy.contains("unsafe"), "{policy}");
    }
}

#[test]
fn a_program_that_asks_for_a_file_we_do_not_have_gets_the_apis_answer() {
    assert!(ask("/ui/assets/app-0.js", &[(ACCEPT, "application/json")]).is_none());
    assert!(ask("/ui/assets/app-0.js", &[]).is_none());
}

#[test]
fn names_with_a_hash_are_kept_forever_and_pages_are_asked_about() {
    let script = ask("/ui/assets/app-1a.js", &[]).unwrap();
    assert_eq!(header(&script, &CACHE_CONTROL), "public, max-age=31536000, immutable");
    assert_eq!(header(&ask("/ui/nodes", &[]).unwrap(), &CACHE_CONTROL), "no-cache");
}

#[test]
fn who_takes_gzip_gets_it_under_a_tag_of_its_own() {
    let rows = [
        ("gzip, br", "gzip"),
        ("GZIP;q=0.5", "gzip"),
        ("br", ""),
        ("gzip;q=0", ""),
        ("gzip; q=0.0, br", ""),
        ("x-gzip-not", ""),
    ];
    let identity = ask("/ui/", &[]).unwrap();
    for (accepted, encoding) in rows {
        let response = ask("/ui/", &[(ACCEPT_ENCODING, accepted)]).unwrap();
        assert_eq!(header(&response, &CONTENT_ENCODING), encoding, "{accepted}");
        let same = header(&response, &ETAG) == header(&identity, &ETAG);
        assert_eq!(same, encoding.is_empty(), "{accepted}");
    }
    // Nothing was saved by compressing it.
    let script = ask("/ui/assets/app-1a.js", &[(ACCEPT_ENCODING, "gzip")]).unwrap();
    assert_eq!(header(&script, &CONTENT_ENCODING), "");
}

#[test]
fn who_has_it_is_not_sent_it_again() {
    let tag = header(&ask("/ui/", &[]).unwrap(), &ETAG).to_owned();
    let gzip = ask("/ui/", &[(ACCEPT_ENCODING, "gzip")]).unwrap();
    let rows = [
        (tag.clone(), 304),
        (header(&gzip, &ETAG).to_owned(), 304),
        (format!("\"other\", W/{tag}"), 304),
        ("*".to_owned(), 304),
        ("\"other\"".to_owned(), 200),
    ];
    for (seen, status) in rows {
        let mut asked = HeaderMap::new();
        asked.insert(IF_NONE_MATCH, HeaderValue::from_str(&seen).unwrap());
        let response = Dashboard::new(ASSETS).answer(&Method::GET, "/ui/", &asked).unwrap();
        assert_eq!(response.status().as_u16(), status, "{seen}");
        assert_eq!(header(&response, &ETAG), tag);
    }
}

#[test]
fn files_are_only_read() {
    let asked = Dashboard::new(ASSETS).answer(&Method::POST, "/ui/", &HeaderMap::new()).unwrap();
    assert_eq!(asked.status(), StatusCode::METHOD_NOT_ALLOWED);
    assert_eq!(header(&asked, &ALLOW), "GET, HEAD");
}

#[test]
fn people_are_told_from_programs() {
    let rows = [
        ("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8", true),
        ("application/json", false),
        ("*/*", false),
        ("Text/HTML;q=0.1", true),
    ];
    for (accept, expected) in rows {
        assert_eq!(reads_html(&headers(&[(ACCEPT, accept)])), expected, "{accept}");
    }
    assert!(!reads_html(&HeaderMap::new()));
}
