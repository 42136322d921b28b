//! Totals are those of the rows, whatever happened.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use sandbox_model::*;
use sandbox_store::records::{
    ContainerFilter, ExecutionFilter, Page, PageRequest, Report, SessionFilter, StoreError,
};
use sandbox_store::{Records, Stored};

use crate::databases::Database;
use crate::on_every_database;
use crate::sample::*;

on_every_database!(totals_are_those_of_the_rows_after_any_history);

/// Something that happens; numbers choose among what there is.
#[derive(Debug, Clone)]
enum Happening {
    Session {
        template: usize,
        agent: usize,
    },
    SessionChanges {
        which: usize,
        status: usize,
        agent: usize,
        stale: bool,
    },
    Execution {
        session: usize,
    },
    ExecutionChanges {
        which: usize,
        status: usize,
    },
    ExecutionFinishes {
        which: usize,
    },
    Container {
        runtime: usize,
    },
    ContainerChanges {
        which: usize,
        status: usize,
        runtime: usize,
    },
    Again {
        which: usize,
    },
    SessionIsDeleted {
        which: usize,
    },
}

fn happening() -> impl Strategy<Value = Happening> {
    use Happening::*;
    let n = 0usize..100;
    prop_oneof![
        3 => (n.clone(), n.clone()).prop_map(|(template, agent)| Session { template, agent }),
        3 => (n.clone(), n.clone(), n.clone(), any::<bool>()).prop_map(
            |(which, status, agent, stale)| SessionChanges { which, status, agent, stale }
        ),
        2 => n.clone().prop_map(|session| Execution { session }),
        2 => (n.clone(), n.clone()).prop_map(|(which, status)| ExecutionChanges { which, status }),
        1 => n.clone().prop_map(|which| ExecutionFinishes { which }),
        1 => n.clone().prop_map(|runtime| Container { runtime }),
        1 => (n.clone(), n.clone(), n.clone()).prop_map(
            |(which, status, runtime)| ContainerChanges { which, status, runtime }
        ),
        1 => n.clone().prop_map(|which| Again { which }),
        1 => n.prop_map(|which| SessionIsDeleted { which }),
    ]
}

const RUNTIMES: [RuntimeKind; 3] = [
    RuntimeKind::Local,
    RuntimeKind::Docker,
    RuntimeKind::Kubernetes,
];

const NODES: [&str; 3] = ["a", "b", "c"];

fn agent(number: usize) -> Option<String> {
    [None, Some("ada"), Some("bob")][number % 3].map(str::to_owned)
}

/// What one writer has made so far.
struct World {
    records: Records,
    templates: [Template; 2],
    sessions: Vec<Stored<Session>>,
    executions: Vec<Stored<Execution>>,
    containers: Vec<Stored<Container>>,
}

impl World {
    async fn take(&mut self, happening: Happening) -> Result<(), StoreError> {
        match happening {
            Happening::Session {
                template,
                agent: whose,
            } => {
                let session = Session {
                    agent_id: agent(whose),
                    node_id: NODES[template % 3].parse().unwrap(),
                    ..session(&self.templates[template % 2])
                };
                self.sessions
                    .push(self.records.insert_session(&session).await?);
            }
            Happening::SessionChanges {
                which,
                status,
                agent: whose,
                stale,
            } => {
                let number = self.sessions.len().max(1);
                let Some(current) = self.sessions.get_mut(which % number) else {
                    return Ok(());
                };
                let new = Session {
                    status: SessionStatus::ALL[status % 7],
                    agent_id: agent(whose),
                    node_id: NODES[status % 3].parse().unwrap(),
                    ..current.value.clone()
                };
                if stale {
                    let version = current.version - 1;
                    let value = current.value.clone();
                    return self
                        .records
                        .update_session(&Stored { value, version }, &new)
                        .await
                        .map(drop);
                }
                *current = self.records.update_session(current, &new).await?;
            }
            Happening::Execution { session } => {
                let number = self.sessions.len().max(1);
                let Some(session) = self.sessions.get(session % number) else {
                    return Ok(());
                };
                let execution = execution(&session.value);
                self.executions
                    .push(self.records.insert_execution(&execution).await?);
            }
            Happening::ExecutionChanges { which, status } => {
                let number = self.executions.len().max(1);
                let Some(current) = self.executions.get_mut(which % number) else {
                    return Ok(());
                };
                let new = Execution {
                    status: ExecutionStatus::ALL[status % 7],
                    ..current.value.clone()
                };
                *current = self.records.update_execution(current, &new).await?;
            }
            Happening::ExecutionFinishes { which } => {
                let number = self.executions.len().max(1);
                let Some(current) = self.executions.get_mut(which % number) else {
                    return Ok(());
                };
                let result = result();
                let report = Report {
                    digest: "d",
                    result: &result,
                    artifacts: &[],
                };
                let ended = completed(&current.value);
                self.records.finish(current, &ended, &report).await?;
                let id = current.value.id.clone();
                *current = self.records.execution(&id).await?.unwrap();
            }
            Happening::Container { runtime } => {
                let container = Container {
                    runtime: RUNTIMES[runtime % 3],
                    ..container(&self.templates[0])
                };
                self.containers
                    .push(self.records.insert_container(&container).await?);
            }
            Happening::ContainerChanges {
                which,
                status,
                runtime,
            } => {
                let number = self.containers.len().max(1);
                let Some(current) = self.containers.get_mut(which % number) else {
                    return Ok(());
                };
                let new = Container {
                    status: ContainerStatus::ALL[status % 4],
                    runtime: RUNTIMES[runtime % 3],
                    ..current.value.clone()
                };
                *current = self.records.update_container(current, &new).await?;
            }
            Happening::Again { which } => {
                let number = self.sessions.len().max(1);
                if let Some(session) = self.sessions.get(which % number) {
                    self.records.insert_session(&session.value).await?;
                }
            }
            Happening::SessionIsDeleted { which } => {
                let number = self.sessions.len().max(1);
                if let Some(session) = self.sessions.get(which % number) {
                    self.records.delete_session(&session.value.id).await?;
                }
            }
        }
        Ok(())
    }
}

/// Two writers at once, each with its own history.
async fn live_through(
    records: &Records,
    histories: [Vec<Happening>; 2],
) -> [Vec<Stored<Session>>; 2] {
    let templates = [template(), template()];
    for template in &templates {
        records.insert_template(template).await.unwrap();
    }
    let [one, two] = histories.map(|history| {
        let mut world = World {
            records: records.clone(),
            templates: templates.clone(),
            sessions: Vec::new(),
            executions: Vec::new(),
            containers: Vec::new(),
        };
        tokio::spawn(async move {
            for happening in history {
                use StoreError::*;
                match world.take(happening).await {
                    Ok(()) => {}
                    Err(Stale { .. } | Exists { .. } | NotOver { .. }) => {}
                    // Of what was deleted.
                    Err(Missing { kind, .. }) if kind != "template" => {}
                    Err(error) => panic!("{error:?}"),
                }
            }
            world.sessions
        })
    });
    [one.await.unwrap(), two.await.unwrap()]
}

/// Every page of a list has the same total, and it is the number of its records.
async fn check<T, F>(list: impl Fn(PageRequest) -> F)
where
    F: Future<Output = Result<Page<T>, StoreError>>,
{
    let mut seen = 0;
    let mut request = first(200);
    loop {
        let page = list(request).await.unwrap();
        seen += u64::try_from(page.items.len()).unwrap();
        let Some(next) = page.next else {
            assert_eq!(page.total, seen);
            return;
        };
        request = first(200).after(next);
    }
}

pub async fn every_session(records: &Records) -> Vec<Stored<Session>> {
    let mut sessions = Vec::new();
    let mut request = first(200);
    loop {
        let everything = SessionFilter::default();
        let page = records.sessions(&everything, &request).await.unwrap();
        sessions.extend(page.items);
        let Some(next) = page.next else {
            return sessions;
        };
        request = first(200).after(next);
    }
}

/// Every list has the totals that its pages add up to.
pub async fn check_everything(records: &Records, sessions: &[Stored<Session>]) {
    let agents = [None, Some("ada".to_owned()), Some("bob".to_owned())];
    let templates: BTreeSet<_> = sessions
        .iter()
        .map(|stored| stored.value.template_id.clone())
        .collect();
    let templates: Vec<_> = templates.into_iter().map(Some).chain([None]).collect();
    let statuses = SessionStatus::ALL.into_iter().map(Some).chain([None]);
    for status in statuses {
        for (agent_id, template_id) in agents
            .iter()
            .flat_map(|a| templates.iter().map(move |t| (a, t)))
        {
            let filter = &SessionFilter {
                status,
                template_id: template_id.clone(),
                agent_id: agent_id.clone(),
            };
            check(|page| async move { records.sessions(filter, &page).await }).await;
        }
    }
    for session in sessions {
        for status in ExecutionStatus::ALL.into_iter().map(Some).chain([None]) {
            let filter = &ExecutionFilter {
                session_id: session.value.id.clone(),
                status,
            };
            check(|page| async move { records.executions(filter, &page).await }).await;
        }
    }
    for status in ContainerStatus::ALL.into_iter().map(Some).chain([None]) {
        for runtime in RUNTIMES.into_iter().map(Some).chain([None]) {
            let filter = &ContainerFilter { status, runtime };
            check(|page| async move { records.containers(filter, &page).await }).await;
        }
    }
}

/// What lives is counted as if somebody looked at everything.
pub async fn check_what_lives(records: &Records) {
    let mut by_status: BTreeMap<_, u64> = BTreeMap::new();
    let mut by_node: BTreeMap<_, u64> = BTreeMap::new();
    for status in SessionStatus::ALL {
        if !status.is_over() {
            by_status.insert(status, 0);
        }
    }
    let mut executions = 0;
    for Stored { value, .. } in every_session(records).await {
        executions += records.live_executions(&value.id).await.unwrap().len();
        if !value.status.is_over() {
            *by_status.entry(value.status).or_default() += 1;
            *by_node.entry(value.node_id).or_default() += 1;
        }
    }
    assert_eq!(records.live_session_counts().await.unwrap(), by_status);
    let told = records.live_session_counts_by_node().await.unwrap();
    assert_eq!(told, by_node);
    let told = records.live_execution_count().await.unwrap();
    assert_eq!(told, u64::try_from(executions).unwrap());
}

async fn totals_are_those_of_the_rows_after_any_history(database: Database) {
    let records = open(&database).await;
    let config = Config {
        cases: 8,
        // A failure is told with its history; to look for a shorter one on a real server takes long.
        max_shrink_iters: 20,
        failure_persistence: None,
        ..Config::default()
    };
    let histories = prop::array::uniform2(prop::collection::vec(happening(), 1..40));
    let handle = tokio::runtime::Handle::current();
    tokio::task::spawn_blocking(move || {
        let mut runner = TestRunner::new(config);
        let outcome = runner.run(&histories, |histories| {
            handle.block_on(async {
                let sessions = live_through(&records, histories).await.concat();
                check_everything(&records, &sessions).await;
                check_what_lives(&records).await;
            });
            Ok(())
        });
        outcome.unwrap();
    })
    .await
    .unwrap();
}
