//! Files that executions made: each path once, as it was told last.

use std::collections::BTreeSet;

use sandbox_model::execution::Artifact;
use sandbox_model::*;
use sandbox_store::Records;
use sandbox_store::records::{Added, Report, Reported, StoreError};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(
    a_file_that_is_told_twice_is_kept_once,
    a_result_adds_to_the_files_told_before,
    files_stay_as_they_are_once_the_result_is_there,
    an_execution_has_only_so_many_files,
    many_files_take_few_statements,
    servers_that_tell_of_the_same_files_keep_each_once,
);

/// How many files an execution may have, where that is not the point.
const MOST: usize = 2000;

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
    let added = records.add_artifacts(id, &files, MOST).await.unwrap();
    assert_eq!(added, Added::New(files.clone()));
    assert_eq!(records.artifacts(id).await.unwrap(), files);

    let grown = Artifact {
        size_bytes: 7,
        ..artifact(&execution, "out/a.png", 9)
    };
    let again = artifact(&execution, &long, 9);
    let other = artifact(&execution, "out/b.png", 10);
    let told = [grown.clone(), again, other.clone()];
    let added = records.add_artifacts(id, &told, MOST).await.unwrap();
    let known = files.remove(0);
    let grown = Artifact {
        id: known.id,
        ..grown
    };
    let [_, _, long] = &files[..] else { panic!() };
    let kept = vec![grown.clone(), long.clone(), other.clone()];
    assert_eq!(added, Added::New(kept.clone()));
    let again = records.add_artifacts(id, &kept, MOST).await.unwrap();
    assert_eq!(again, Added::Known(kept));
    files.extend([grown, other]);
    assert_eq!(records.artifacts(id).await.unwrap(), files);

    // Twice in one breath, too.
    let (first, last) = (
        artifact(&execution, "out/c", 20),
        artifact(&execution, "out/c", 21),
    );
    let kept = records
        .add_artifacts(id, &[first.clone(), last.clone()], MOST)
        .await;
    let one = Artifact {
        id: first.id,
        ..last
    };
    assert_eq!(kept.unwrap(), Added::New(vec![one]));

    let nothing = records.add_artifacts(id, &[], MOST).await.unwrap();
    assert_eq!(nothing, Added::Known(Vec::new()));
    let strange = Execution {
        id: crate::sample::execution(&session(&template())).id,
        ..execution.clone()
    };
    let file = artifact(&strange, "out/a.png", 0);
    let refused = records
        .add_artifacts(id, std::slice::from_ref(&file), MOST)
        .await
        .unwrap_err();
    let text = "execution_id of an artifact is that of another execution";
    assert_eq!(refused.to_string(), text);
    let missing = records.add_artifacts(&strange.id, &[file], MOST).await;
    assert!(
        matches!(missing, Err(StoreError::Missing { .. })),
        "{missing:?}"
    );
    let taken = Artifact {
        path: "out/elsewhere".to_owned(),
        ..records.artifacts(id).await.unwrap().remove(0)
    };
    let taken = records.add_artifacts(id, &[taken], MOST).await;
    assert!(matches!(taken, Err(StoreError::Exists { .. })), "{taken:?}");
}

async fn a_result_adds_to_the_files_told_before(database: Database) {
    let records = open(&database).await;
    let execution = with_execution(&records).await;
    let id = &execution.id;
    let early = artifact(&execution, "out/a.png", 0);
    let told = std::slice::from_ref(&early);
    records.add_artifacts(id, told, MOST).await.unwrap();
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

async fn files_stay_as_they_are_once_the_result_is_there(database: Database) {
    let records = open(&database).await;
    let execution = with_execution(&records).await;
    let id = &execution.id;
    let early = artifact(&execution, "out/a.png", 0);
    let told = std::slice::from_ref(&early);
    // One that is over and whose result is still to come has files still to come.
    let current = records.execution(id).await.unwrap().unwrap();
    let ended = Execution {
        status: ExecutionStatus::Timeout,
        ..completed(&execution)
    };
    let current = records.update_execution(&current, &ended).await.unwrap();
    let added = records.add_artifacts(id, told, MOST).await.unwrap();
    assert_eq!(added, Added::New(told.to_vec()));
    let report = Report {
        digest: "d",
        result: &result(),
        artifacts: &[],
    };
    let reported = records.finish(&current, &ended, &report).await.unwrap();
    assert!(matches!(reported, Reported::First(_)), "{reported:?}");

    let same = artifact(&execution, "out/a.png", 9);
    let added = records.add_artifacts(id, &[same], MOST).await.unwrap();
    assert_eq!(added, Added::Known(told.to_vec()));
    let grown = Artifact {
        size_bytes: 7,
        ..early.clone()
    };
    for late in [grown, artifact(&execution, "out/b.png", 9)] {
        let added = records.add_artifacts(id, &[late], MOST).await.unwrap();
        assert_eq!(added, Added::Late);
    }
    assert_eq!(records.artifacts(id).await.unwrap(), told);
}

async fn an_execution_has_only_so_many_files(database: Database) {
    let records = open(&database).await;
    let execution = with_execution(&records).await;
    let id = &execution.id;
    let file = |number| artifact(&execution, &format!("out/{number}"), number);
    let two = [file(0), file(1)];
    let added = records.add_artifacts(id, &two, 2).await.unwrap();
    assert_eq!(added, Added::New(two.to_vec()));
    let added = records.add_artifacts(id, &[file(1), file(2)], 2).await;
    assert_eq!(added.unwrap(), Added::TooMany);
    assert_eq!(records.artifacts(id).await.unwrap(), two);
    let grown = Artifact {
        size_bytes: 7,
        ..file(1)
    };
    let added = records.add_artifacts(id, &[grown], 2).await.unwrap();
    assert!(matches!(added, Added::New(_)), "{added:?}");
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
        records.add_artifacts(id, &files, MOST).await.unwrap();
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
                let file = [artifact(&execution, &path, number)];
                let added = records.add_artifacts(&execution.id, &file, MOST);
                added.await.unwrap();
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
