//! Nodes: the machines that sessions run on. What drains one has its server to itself, because it stays so.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use sandbox_api_tests::{Server, on_every_storage};
use serde_json::{Value, json};

/// The only node there is.
fn node(server: &Server) -> Value {
    let page = server.get("/nodes").json(200);
    let [node] = &page["nodes"].as_array().unwrap()[..] else {
        panic!("{page:#}");
    };
    node.clone()
}

on_every_storage! {
    fn a_node_that_is_drained_keeps_its_sessions_and_takes_no_more(server: &Server) {
        let session = server.session();
        let before = node(server);
        assert_eq!(before["status"], "online");
        let id = before["node_id"].as_str().unwrap();
        let drain = || server.post(&format!("/nodes/{id}/drain"), &json!({})).json(200);
        // Whoever asks again is told the same.
        for _ in 0..2 {
            let drained = drain();
            assert_eq!((&drained["node_id"], &drained["status"]), (&before["node_id"], &json!("draining")));
            assert_eq!(node(server)["status"], "draining");
        }
        let fields = |node: &Value| node.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
        assert_eq!(fields(&drain()), fields(&before));

        for pool in ["never", "prefer"] {
            let asked = json!({ "template_id": "python-basic", "pool": pool });
            let error = server.post("/sessions", &asked).error(503, "Sandbox.CapacityExhausted");
            assert!(error["error_detail"].as_str().unwrap().contains(id), "{error}");
        }
        server.post(&format!("/sessions/{session}/fork"), &json!({})).error(503, "Sandbox.CapacityExhausted");
        assert_eq!(server.shell(&session, "echo still"), "still");
        server.post(&format!("/sessions/{session}/renew"), &json!({})).json(200);
        server.delete(&format!("/sessions/{session}")).json(200);

        // It is none of these that is drained; and a node is only listed, and drained.
        let long = "a".repeat(65);
        for other in ["no-node", "-", "..", "%2e%2e", "%00", "'", "LOCAL%20", &long] {
            let answer = server.post(&format!("/nodes/{other}/drain"), &json!({}));
            let error = answer.error(404, "Sandbox.NodeNotFound");
            assert!(error["solution"].as_str().is_some_and(|text| !text.is_empty()), "{error}");
        }
        server.get(&format!("/nodes/{id}")).error(404, "Sandbox.NotFound");
    }
}
