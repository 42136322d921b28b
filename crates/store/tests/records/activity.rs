//! When sessions were last used: noted often, forward only, beside every other change.

use sandbox_model::*;
use sandbox_store::records::SessionFilter;
use sandbox_store::{Records, Stored};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    a_use_moves_forward_and_leaves_the_version,
    an_update_does_not_undo_a_use,
    many_uses_take_few_statements,
    servers_that_touch_the_same_sessions_agree,
);

async fn with_sessions(records: &Records, number: usize) -> Vec<Stored<Session>> {
    let template = template();
    records.insert_template(&template).await.unwrap();
    let mut sessions = Vec::new();
    for _ in 0..number {
        let session = session(&template);
        sessions.push(records.insert_session(&session).await.unwrap());
    }
    sessions
}

async fn read(records: &Records, id: &SessionId) -> Stored<Session> {
    records.session(id).await.unwrap().unwrap()
}

async fn a_use_moves_forward_and_leaves_the_version(database: Database) {
    let records = open(&database).await;
    let stored = with_sessions(&records, 1).await.remove(0);
    let id = &stored.value.id;
    let expiry = stored.value.expires_at;
    let before = records.statements();
    assert!(records.touch_session(id, time(50), None).await.unwrap());
    assert_eq!(records.statements() - before, 1);
    let used = read(&records, id).await;
    let expected = Session {
        last_activity_at: time(50),
        ..stored.value.clone()
    };
    assert_eq!((used.value, used.version), (expected, stored.version));

    // What comes late does not turn the clock back.
    let late = records.touch_session(id, time(40), Some(time(7))).await;
    assert!(late.unwrap());
    let used = read(&records, id).await.value;
    assert_eq!((used.last_activity_at, used.expires_at), (time(50), expiry));
    let later = time(900_000_000);
    let renewed = records.touch_session(id, time(60), Some(later)).await;
    assert!(renewed.unwrap());
    let used = read(&records, id).await.value;
    assert_eq!((used.last_activity_at, used.expires_at), (time(60), later));

    let over = Session {
        status: SessionStatus::Completed,
        ..used
    };
    let over = records.update_session(&stored, &over).await.unwrap();
    assert!(!records.touch_session(id, time(70), None).await.unwrap());
    assert_eq!(read(&records, id).await, over);
    let unknown = session(&template()).id;
    let touched = records.touch_session(&unknown, time(1), None).await;
    assert!(!touched.unwrap());
}

async fn an_update_does_not_undo_a_use(database: Database) {
    let records = open(&database).await;
    let stored = with_sessions(&records, 1).await.remove(0);
    let id = &stored.value.id;
    let expiry = time(900_000_000);
    records
        .touch_session(id, time(50), Some(expiry))
        .await
        .unwrap();
    // Made from what was read before.
    let running = Session {
        status: SessionStatus::Running,
        last_activity_at: time(30),
        ..stored.value.clone()
    };
    let running = records.update_session(&stored, &running).await.unwrap();
    let used = read(&records, id).await.value;
    assert_eq!((used.last_activity_at, used.expires_at), (time(50), expiry));
    assert_eq!(used.status, SessionStatus::Running);
    // An expiry that is meant to change does, in either direction.
    let shorter = Session {
        expires_at: time(100),
        last_activity_at: time(60),
        ..used
    };
    records.update_session(&running, &shorter).await.unwrap();
    let used = read(&records, id).await.value;
    assert_eq!(
        (used.last_activity_at, used.expires_at),
        (time(60), time(100))
    );
}

async fn many_uses_take_few_statements(database: Database) {
    let records = open(&database).await;
    let sessions = with_sessions(&records, 450).await;
    let over = Session {
        status: SessionStatus::Failed,
        ..sessions[7].value.clone()
    };
    records.update_session(&sessions[7], &over).await.unwrap();
    let mut uses = vec![(session(&template()).id, time(9))];
    for (place, stored) in (0..).zip(&sessions) {
        let id = &stored.value.id;
        uses.push((id.clone(), time(1000 + place)));
        // Older, newer, and out of order.
        uses.push((id.clone(), time(place)));
    }
    let before = records.statements();
    let touched = records.touch_sessions(&uses).await.unwrap();
    assert_eq!(records.statements() - before, 3);
    assert_eq!(touched, 449);
    for (place, stored) in (0..).zip(&sessions) {
        let used = read(&records, &stored.value.id).await;
        let expected = match place {
            7 => stored.value.last_activity_at,
            _ => time(1000 + place),
        };
        assert_eq!(used.value.last_activity_at, expected);
    }
    // Again, and older: all are there, none goes back.
    let old: Vec<_> = sessions
        .iter()
        .map(|stored| (stored.value.id.clone(), time(3)))
        .collect();
    assert_eq!(records.touch_sessions(&old).await.unwrap(), 449);
    let used = read(&records, &sessions[449].value.id).await.value;
    assert_eq!(used.last_activity_at, time(1449));
    assert_eq!(records.touch_sessions(&[]).await.unwrap(), 0);
}

async fn servers_that_touch_the_same_sessions_agree(database: Database) {
    let records = open(&database).await;
    let sessions = with_sessions(&records, 60).await;
    let before = records.statements();
    let mut tasks = Vec::new();
    for server in 0..4 {
        let records = records.clone();
        let mut ids: Vec<_> = sessions
            .iter()
            .map(|stored| stored.value.id.clone())
            .collect();
        ids.rotate_left(server * 13);
        tasks.push(tokio::spawn(async move {
            for round in 0..10 {
                let at = time(1000 * round + i64::try_from(server).unwrap());
                let uses: Vec<_> = ids.iter().map(|id| (id.clone(), at)).collect();
                assert_eq!(records.touch_sessions(&uses).await.unwrap(), 60);
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    // Nobody was sent back to start again.
    assert_eq!(records.statements() - before, 40);
    let everything = SessionFilter::default();
    let page = records.sessions(&everything, &first(200)).await.unwrap();
    for stored in page.items {
        assert_eq!(stored.value.last_activity_at, time(9003));
        assert_eq!(stored.version, 1);
    }
}
