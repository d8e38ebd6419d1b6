//! The dashboard's files through the real door. What is embedded depends on whether it was built; what is
//! promised about it does not.

use crate::harness::{Reply, Server, Setup};
use reqwest::redirect;
use serde_json::json;

const BROWSER: &[(&str, &str)] = &[("accept", "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8")];

/// Asks as a browser does, but is not led anywhere.
async fn page(server: &Server, path: &str, headers: &[(&str, &str)]) -> Reply {
    let client = reqwest::Client::builder().tls_certs_only([]).redirect(redirect::Policy::none());
    let client = client.build().expect("a client");
    let mut request = client.get(format!("{}{path}", server.url()));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    server.send(request).await
}

#[tokio::test]
async fn people_come_to_the_dashboard_and_programs_are_not_affected() {
    let server = Setup::embedded().start().await;
    let landing = page(&server, "/", BROWSER).await;
    assert_eq!((landing.status, landing.header("location")), (303, "/ui/"));
    assert_eq!(page(&server, "/", &[("accept", "application/json")]).await.status, 200);
    assert_eq!(page(&server, "/", &[]).await.status, 200);

    for path in ["/ui", "/ui/", "/ui/nodes/gpu-17.rack.example", "/ui/clusters/a/nodepools/b/"] {
        let reply = page(&server, path, BROWSER).await;
        assert_eq!(reply.status, 200, "{path}");
        assert_eq!(reply.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!(reply.header("cache-control"), "no-cache", "{path}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(reply.header("referrer-policy"), "no-referrer", "{path}");
        let policy = reply.header("content-security-policy");
        assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        let seen = reply.header("etag").to_owned();
        let again = page(&server, path, &[("if-none-match", seen.as_str())]).await;
        assert_eq!((again.status, again.text.as_str()), (304, ""), "{path}");
    }

    let packed = page(&server, "/ui/", &[("accept-encoding", "gzip")]).await;
    assert_eq!(packed.header("content-encoding"), "gzip");

    // Whatever the page loads is there, and may be kept.
    let index = page(&server, "/ui/", &[]).await.text;
    for part in index.split('"').filter(|part| part.starts_with("/ui/assets/")) {
        let asset = page(&server, part, BROWSER).await;
        assert_eq!(asset.status, 200, "{part}");
        assert!(asset.header("cache-control").contains("immutable"), "{part}");
    }
    let absent = page(&server, "/ui/assets/none-0.js", BROWSER).await;
    assert_eq!(absent.status, 404);
    assert!(absent.text.contains("href=\"/ui/\""), "{}", absent.text);
    let refused = page(&server, "/ui/assets/none-0.js", &[("accept", "application/json")]).await;
    refused.refused(404, &json!({}));
}

#[tokio::test]
async fn the_files_need_no_token_and_what_they_show_does() {
    let tokens = json!([{ "token": "t-1", "name": "ann", "role": "viewer", "tenant": "acme" }]);
    let server = Setup::embedded().tokens(tokens).start().await;
    assert_eq!(page(&server, "/ui/", BROWSER).await.status, 200);
    assert_eq!(page(&server, "/api/argosy/v1/nodes", &[]).await.status, 401);
}
