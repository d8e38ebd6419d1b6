use super::*;
use crate::testing::Dir;

async fn read(text: &str) -> Result<Option<String>, String> {
    let dir = Dir::new();
    let path = dir.path().join("token");
    std::fs::write(&path, text).unwrap();
    Token::File(path).read(&Aside::default()).await
}

#[tokio::test]
async fn r2_i24_a_token_that_cannot_be_sent_is_told_and_not_left_out() {
    assert_eq!(read("abc.def-1\n").await.unwrap().unwrap(), "abc.def-1");
    for bad in ["", "\n", "one\ntwo\n", "a b", "t\u{e4}g", "a\u{0}b"] {
        let error = read(bad).await.unwrap_err();
        assert!(error.contains("token"), "{bad:?}: {error}");
        assert!(bad.trim().is_empty() || !error.contains(bad.trim()), "it is a secret: {error}");
    }
    let value = Token::Value("a\nb".to_owned()).read(&Aside::default()).await.unwrap_err();
    assert!(value.contains("ARGOSY_TOKEN"), "{value}");
}

/// Counts connections, and answers nothing.
#[tokio::test]
async fn r2_i19_single_calls_share_a_connection() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let listener = tokio::net::TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicU32::new(0));
    let counted = connections.clone();
    let mut server = JoinSet::new();
    server.spawn(async move {
        let mut open = JoinSet::new();
        loop {
            let (mut stream, _) = listener.accept().await.unwrap();
            counted.fetch_add(1, Ordering::SeqCst);
            open.spawn(async move {
                let mut bytes = [0; 4096];
                // One answer for each request that comes; each is small enough to come at once.
                while let Ok(1..) = stream.read(&mut bytes).await {
                    let answer = "HTTP/1.1 404 Not Found\r\ncontent-type: application/json\r\n\
                                  content-length: 20\r\n\r\n{\"code\":\"not_found\"}";
                    if stream.write_all(answer.as_bytes()).await.is_err() {
                        return;
                    }
                }
            });
        }
    });
    let dir = Dir::new();
    let token = dir.path().join("token");
    std::fs::write(&token, "one").unwrap();
    let link =
        Link::new(&[address], "gpu-1", Token::File(token.clone()), None, dir.path()).unwrap();
    for _ in 0..5 {
        assert!(matches!(link.poll().await, Called::Told(..)));
    }
    assert_eq!(connections.load(Ordering::SeqCst), 1);
    // A new token is used at once, on a connection of its own.
    std::fs::write(&token, "two").unwrap();
    link.poll().await;
    assert_eq!(connections.load(Ordering::SeqCst), 2);
}
