//! A random order of work, promotes, undos, redos, touches and edits, against a model that holds
//! every file in memory: the source is what the model says, the sandbox goes on showing what it
//! showed, and no version of a file that was promoted is lost.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod project;

use std::collections::BTreeMap;
use std::fs;

use project::{Project, shell, tick};
use proptest::prelude::*;
use sandbox_model::{BackendKind, Class, Failure};
use sandbox_workspace::View;
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{Resolution, Resolutions, Selection};
use sandbox_workspace::undo::{self, UndoError, Which};

const NAMES: [&str; 5] = ["a", "b", "c", "d/e", "d/f"];

#[derive(Debug, Clone)]
enum Step {
    /// In the sandbox.
    Write(usize),
    Delete(usize),
    /// In the source.
    Edit(usize),
    Touch(usize),
    Promote,
    Undo,
    Redo,
}

fn step() -> impl Strategy<Value = Step> {
    let name = 0..NAMES.len();
    prop_oneof![
        3 => name.clone().prop_map(Step::Write),
        1 => name.clone().prop_map(Step::Delete),
        1 => name.clone().prop_map(Step::Edit),
        1 => name.prop_map(Step::Touch),
        3 => Just(Step::Promote),
        4 => Just(Step::Undo),
        3 => Just(Step::Redo),
    ]
}

type Files = BTreeMap<&'static str, String>;

/// One promote: what it changed, from what to what.
struct Promoted {
    changes: Vec<(&'static str, Option<String>, Option<String>)>,
    undone: bool,
    /// When it was last undone.
    at: usize,
}

struct Model {
    backend: BackendKind,
    source: Files,
    sandbox: Files,
    /// Of an overlay: names at which it shows the source.
    through: Vec<&'static str>,
    promotes: Vec<Promoted>,
    clock: usize,
}

impl Model {
    fn new(backend: BackendKind) -> Model {
        let planted: Files = NAMES
            .iter()
            .map(|name| (*name, format!("planted {name}")))
            .collect();
        Model {
            backend,
            source: planted.clone(),
            sandbox: planted,
            through: match backend {
                BackendKind::Overlay => NAMES.to_vec(),
                _ => Vec::new(),
            },
            promotes: Vec::new(),
            clock: 0,
        }
    }

    fn own(&mut self, name: &str) {
        self.through.retain(|shown| *shown != name);
    }

    fn put_in_source(&mut self, name: &'static str, text: Option<String>) {
        set(&mut self.source, name, text.clone());
        if self.through.contains(&name) {
            set(&mut self.sandbox, name, text);
        }
    }

    fn promote(&mut self) {
        let differs = |name: &&&'static str| self.sandbox.get(**name) != self.source.get(**name);
        let names: Vec<&'static str> = NAMES.iter().filter(differs).copied().collect();
        let mut changes = Vec::new();
        for name in names {
            let now = self.sandbox.get(name).cloned();
            changes.push((name, self.source.get(name).cloned(), now.clone()));
            set(&mut self.source, name, now);
            if self.backend == BackendKind::Overlay && !self.through.contains(&name) {
                self.through.push(name);
            }
        }
        if !changes.is_empty() {
            self.promotes.push(Promoted {
                changes,
                undone: false,
                at: 0,
            });
        }
    }

    /// Whether the undo or redo can be done, or `None` if there is none.
    fn turn(&mut self, undo: bool) -> Option<bool> {
        let candidates = self.promotes.iter().enumerate();
        let index = match undo {
            true => candidates
                .filter(|(_, p)| !p.undone)
                .map(|(i, _)| i)
                .next_back()?,
            false => {
                candidates
                    .filter(|(_, p)| p.undone)
                    .max_by_key(|(_, p)| p.at)?
                    .0
            }
        };
        let changes = self.promotes[index].changes.clone();
        let sides = |change: &(&'static str, Option<String>, Option<String>)| match undo {
            true => (change.0, change.2.clone(), change.1.clone()),
            false => (change.0, change.1.clone(), change.2.clone()),
        };
        let stands = |(name, from, to): &(&'static str, Option<String>, Option<String>)| {
            let now = self.source.get(name).cloned();
            now == *from || now == *to
        };
        let moves: Vec<_> = changes.iter().map(sides).collect();
        if !moves.iter().all(stands) {
            return Some(false);
        }
        for (name, from, to) in moves {
            if self.source.get(name).cloned() == to {
                continue;
            }
            if undo {
                // Given back, or the sandbox's own: it shows what it showed.
                let shown = self.sandbox.get(name).cloned();
                if shown == from || !self.through.contains(&name) {
                    self.own(name);
                }
                self.put_in_source(name, to);
            } else {
                self.put_in_source(name, to.clone());
                let is_overlay = self.backend == BackendKind::Overlay;
                if is_overlay
                    && self.sandbox.get(name).cloned() == to
                    && !self.through.contains(&name)
                {
                    self.through.push(name);
                }
            }
        }
        self.clock += 1;
        let promote = &mut self.promotes[index];
        (promote.undone, promote.at) = (undo, self.clock);
        Some(true)
    }
}

fn set(files: &mut Files, name: &'static str, text: Option<String>) {
    match text {
        Some(text) => files.insert(name, text),
        None => files.remove(name),
    };
}

fn check(project: &Project, model: &Model, what: &str) {
    let mut source = Files::new();
    for name in NAMES {
        if let Ok(text) = fs::read_to_string(project.source.join(name)) {
            source.insert(name, text);
        }
    }
    assert_eq!(source, model.source, "the source, {what}");
    let view = View::open(&project.sandbox).unwrap();
    let mut shown = Files::new();
    for name in NAMES {
        if let Ok(file) = view.workspace().open(&project::path(name)) {
            shown.insert(name, std::io::read_to_string(file).unwrap());
        }
    }
    assert_eq!(shown, model.sandbox, "the sandbox, {what}");
    assert_eq!(project.leftovers(), Vec::<String>::new());
}

fn play(backend: BackendKind, steps: &[Step]) {
    let plant = "mkdir d; for f in a b c d/e d/f; do printf 'planted %s' $f > $f; done";
    let project = Project::with(plant, backend);
    let mut model = Model::new(backend);
    for (number, step) in steps.iter().enumerate() {
        let text = format!("version {number}");
        match step {
            Step::Write(name) => {
                let name = NAMES[*name];
                project.run(&format!("printf '{text}' > {name}"));
                model.own(name);
                model.sandbox.insert(name, text);
            }
            Step::Delete(name) => {
                let name = NAMES[*name];
                // What shows nothing is not deleted.
                if model.sandbox.remove(name).is_some() {
                    project.run(&format!("rm {name}"));
                    model.own(name);
                    // An overlay needs no mark to hide what the source does not have.
                    if backend == BackendKind::Overlay && !model.source.contains_key(name) {
                        model.through.push(name);
                    }
                }
            }
            Step::Edit(name) => {
                tick();
                shell(
                    &project.source,
                    &format!("printf '{text}' > {}", NAMES[*name]),
                );
                tick();
                model.put_in_source(NAMES[*name], Some(text));
            }
            Step::Touch(name) => {
                if model.source.contains_key(NAMES[*name]) {
                    tick();
                    shell(&project.source, &format!("touch {}", NAMES[*name]));
                    tick();
                }
            }
            Step::Promote => {
                let ours = Resolutions {
                    others: Some(Resolution::Ours),
                    ..Resolutions::default()
                };
                project.promote_with(&Selection::default(), &ours).unwrap();
                model.promote();
            }
            Step::Undo | Step::Redo => {
                let undo = matches!(step, Step::Undo);
                let which = if undo {
                    Which::Latest
                } else {
                    Which::LatestUndo
                };
                let (root, source) = (&project.root, &project.source);
                let done = undo::undo(root, source, &which, &[], &mut Silent);
                match (model.turn(undo), done) {
                    (Some(true), done) => drop(done.unwrap()),
                    (Some(false), Err(error)) => assert_eq!(error.class(), Class::Conflict),
                    (None, Err(UndoError::Nothing { .. } | UndoError::NothingToRedo { .. })) => {}
                    (wanted, done) => panic!("step {number}: {wanted:?}, {done:?}"),
                }
            }
        }
        check(&project, &model, &format!("after step {number}, {step:?}"));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn an_overlay_loses_nothing_in_any_order(steps in proptest::collection::vec(step(), 1..16)) {
        play(BackendKind::Overlay, &steps);
    }

    #[test]
    fn a_copy_loses_nothing_in_any_order(
        steps in proptest::collection::vec(step().prop_filter("a copy does not follow its source", |step| {
            !matches!(step, Step::Edit(_))
        }), 1..16),
    ) {
        play(BackendKind::Copy, &steps);
    }
}
