//! Two connections that became one: what comes from either goes to the other.

use std::time::Duration;

use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, split};

/// How long one side may go on when the other has said its last.
const LAST_WORDS: Duration = Duration::from_secs(10);

/// Joins both as soon as they have left HTTP. `held` is kept for as long as they are joined.
pub(crate) fn join(one: OnUpgrade, other: OnUpgrade, held: impl Send + 'static) {
    tokio::spawn(async move {
        // Whoever did not come so far is gone, and so is the other then.
        if let (Ok(one), Ok(other)) = tokio::join!(one, other) {
            relay(TokioIo::new(one), TokioIo::new(other)).await;
        }
        drop(held);
    });
}

async fn relay(one: impl AsyncRead + AsyncWrite, other: impl AsyncRead + AsyncWrite) {
    let ((mut from_one, mut to_one), (mut from_other, mut to_other)) = (split(one), split(other));
    let there = async {
        let _ = tokio::io::copy(&mut from_one, &mut to_other).await;
        let _ = to_other.shutdown().await;
    };
    let back = async {
        let _ = tokio::io::copy(&mut from_other, &mut to_one).await;
        let _ = to_one.shutdown().await;
    };
    tokio::pin!(there, back);
    let _ = tokio::select! {
        () = &mut there => tokio::time::timeout(LAST_WORDS, back).await,
        () = &mut back => tokio::time::timeout(LAST_WORDS, there).await,
    };
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::AsyncReadExt;

    #[tokio::test]
    async fn everything_arrives_in_either_direction_and_the_end_does_too() {
        let (mut client, one) = tokio::io::duplex(64);
        let (mut server, other) = tokio::io::duplex(64);
        let relaying = tokio::spawn(relay(one, other));
        let long = vec![b'x'; 10_000];
        let (sent, mut received) = (long.clone(), vec![0; 10_000]);
        let (wrote, read) = tokio::join!(client.write_all(&sent), server.read_exact(&mut received));
        wrote.expect("sent");
        read.expect("received");
        assert_eq!(received, long);
        server.write_all(b"answer").await.expect("answered");
        drop(server);
        let mut answer = String::new();
        client.read_to_string(&mut answer).await.expect("heard");
        assert_eq!(answer, "answer");
        drop(client);
        relaying.await.expect("it ends");
    }
}
