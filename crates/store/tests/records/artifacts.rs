//! Files that executions made: each path once, as it was told last.

use std::collections::BTreeSet;

use sandbox_model::execution::Artifact;
use sandbox_model::*;
use sandbox_store::Records;
use sandbox_store::records::{Report, Reported, StoreError};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    a_file_that_is_told_twice_is_kept_once,
    a_result_adds_to_the_files_told_before,
    many_files_take_few_statements,
    servers_that_tell_of_the_same_files_keep_each_once,
);

async fn with_execution(records: &Records) -> Execution {
    let template = template();
    let session = session(&template);
    let execution = execution(&session);
    records.insert_template(&template).await.unwrap();
    records.insert_session(&session).await.unwrap();
    records.insert_execution(&execution).await.unwrap();
    execution
}

async fn a_file_that_is_told_twice_is_kept_once(database: Database) {
    let records = open(&database).await;
    let execution = with_execution(&records).await;
    let id = &execution.id;
    let long = format!("out/{}.csv", "long/".repeat(1000));
    let files = ["out/a.png", "out/A.png", "out/a.png ", &long];
    let mut files: Vec<Artifact> = (0..)
        .zip(files)
        .map(|(at, path)| artifact(&execution, path, at))
        .collect();
    assert_eq!(records.add_artifacts(id, &files).await.unwrap(), files);
    assert_eq!(records.artifacts(id).await.unwrap(), files);

    let grown = Artifact {
        size_bytes: 7,
        ..artifact(&execution, "out/a.png", 9)
    };
    let again = artifact(&execution, &long, 9);
    let other = artifact(&execution, "out/b.png", 10);
    let told = [grown.clone(), again, other.clone()];
    let kept = records.add_artifacts(id, &told).await.unwrap();
    let known = files.remove(0);
    let grown = Artifact {
        id: known.id,
        ..grown
    };
    let [_, _, long] = &files[..] else { panic!() };
    assert_eq!(kept, [grown.clone(), long.clone(), other.clone()]);
    files.extend([grown, other]);
    assert_eq!(records.artifacts(id).await.unwrap(), files);

    // Twice in one breath, too.
    let (first, last) = (
        artifact(&execution, "out/c", 20),
        artifact(&execution, "out/c", 21),
    );
    let kept = records
        .add_artifacts(id, &[first.clone(), last.clone()])
        .await;
    let one = Artifact {
        id: first.id,
        ..last
    };
    assert_eq!(kept.unwrap(), [one]);

    assert_eq!(records.add_artifacts(id, &[]).await.unwrap(), []);
    let strange = Execution {
        id: crate::sample::execution(&session(&template())).id,
        ..execution.clone()
    };
    let file = artifact(&strange, "out/a.png", 0);
    let refused = records
        .add_artifacts(id, std::slice::from_ref(&file))
        .await
        .unwrap_err();
    let text = "execution_id of an artifact is that of another execution";
    assert_eq!(refused.to_string(), text);
    let missing = records.add_artifacts(&strange.id, &[file]).await;
    assert!(
        matches!(missing, Err(StoreError::Missing { .. })),
        "{missing:?}"
    );
    let taken = Artifact {
        path: "out/elsewhere".to_owned(),
        ..records.artifacts(id).await.unwrap().remove(0)
    };
    let taken = records.add_artifacts(id, &[taken]).await;
    assert!(matches!(taken, Err(StoreError::Exists { .. })), "{taken:?}");
}

async fn a_result_adds_to_the_files_told_before(database: Database) {
    let records = open(&database).await;
    let execution = with_execution(&records).await;
    let id = &execution.id;
    let early = artifact(&execution, "out/a.png", 0);
    let told = std::slice::from_ref(&early);
    records.add_artifacts(id, told).await.unwrap();
    let late = artifact(&execution, "out/b.png", 5);
    let current = records.execution(id).await.unwrap().unwrap();
    let report = Report {
        digest: "d",
        result: &result(),
        artifacts: &[artifact(&execution, "out/a.png", 4), late.clone()],
    };
    let ended = completed(&execution);
    let reported = records.finish(&current, &ended, &report).await.unwrap();
    assert!(matches!(reported, Reported::First(_)), "{reported:?}");
    assert_eq!(records.artifacts(id).await.unwrap(), [early, late]);
}

async fn many_files_take_few_statements(database: Database) {
    let records = open(&database).await;
    let execution = with_execution(&records).await;
    let id = &execution.id;
    let files: Vec<_> = (0..1200)
        .map(|number| artifact(&execution, &format!("out/{number}"), number))
        .collect();
    // Hold the execution, see what is known, and so many times five hundred.
    for expected in [2 + 3, 2] {
        let before = records.statements();
        records.add_artifacts(id, &files).await.unwrap();
        assert_eq!(records.statements() - before, expected);
    }
    assert_eq!(records.artifacts(id).await.unwrap(), files);
}

async fn servers_that_tell_of_the_same_files_keep_each_once(database: Database) {
    let records = open(&database).await;
    let execution = with_execution(&records).await;
    let mut tasks = Vec::new();
    for server in 0..6 {
        let (records, execution) = (records.clone(), execution.clone());
        tasks.push(tokio::spawn(async move {
            for number in 0..10 {
                let path = format!("out/{}", (number + server) % 10);
                let file = artifact(&execution, &path, number);
                records.add_artifacts(&execution.id, &[file]).await.unwrap();
            }
        }));
    }
    for task in tasks {
        task.await.unwrap();
    }
    let kept = records.artifacts(&execution.id).await.unwrap();
    let paths: BTreeSet<_> = kept.iter().map(|file| &file.path).collect();
    assert_eq!((kept.len(), paths.len()), (10, 10));
}
