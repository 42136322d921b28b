//! A random history, done in a sandbox and on a plain copy, leaves the same tree: as the sandbox
//! shows it, as its change set tells it, as its diff carries it, and in the source once it is promoted.
//! Undo gives the original back, exactly.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod history;
mod project;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use history::operation::{Moves, Operation, Place, operation, perform};
use history::tree::{self, Exact, Links, Tree};
use project::Project;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use sandbox_model::{BackendKind, EntryKind, OverlayXattr};
use sandbox_tests::Filesystem;
use sandbox_workspace::View;
use sandbox_workspace::changes::{ChangeOptions, Renames, change_set};
use sandbox_workspace::diff::{Colour, unified};
use sandbox_workspace::progress::Silent;
use sandbox_workspace::promote::{self, Backup, Resolutions, Selection};
use sandbox_workspace::undo::{Which, undo};

/// A project, and a plain copy of it beside.
struct World {
    project: Project,
    original: Tree,
}

impl World {
    fn new(backend: BackendKind, seed: &[Operation]) -> World {
        World::of(Project::planted(backend, plant(seed)))
    }

    /// With an overlay's marks as a user namespace or as real root writes them.
    fn overlay(xattr: OverlayXattr, seed: &[Operation]) -> World {
        let mut world = World::new(BackendKind::Overlay, seed);
        world.project.sandbox.meta.xattr = Some(xattr);
        world
    }

    /// A subvolume below `place`, with the marks that real root writes.
    fn on_btrfs(place: &Path, seed: &[Operation]) -> World {
        World::of(Project::on_btrfs(place, plant(seed)))
    }

    fn of(project: Project) -> World {
        let links = match project.backend() {
            BackendKind::Copy => Links::Keep,
            BackendKind::Overlay | BackendKind::Btrfs => Links::Split,
        };
        let original = tree::read_directory(&project.source);
        let world = World { project, original };
        tree::copy(&world.project.source, &world.plain(), links);
        world
    }

    fn plain(&self) -> PathBuf {
        self.project.source.with_file_name("plain")
    }

    /// One run of the sandbox, and the same on the plain copy.
    fn run(&self, operations: &[Operation]) {
        let moves = match self.project.sandbox.meta.xattr {
            Some(OverlayXattr::User) => Moves::Copy,
            _ => Moves::Rename,
        };
        self.project.inside(|root| perform(root, operations, moves));
        perform(&self.plain(), operations, moves).unwrap();
    }

    fn check(&self) {
        let expected = tree::read_directory(&self.plain());
        let view = View::open(&self.project.sandbox).unwrap();
        assert_eq!(
            tree::read(view.workspace()),
            expected,
            "what the workspace shows"
        );
        assert_eq!(
            tree::read(view.before()),
            self.original,
            "what it started from"
        );
        let split = ChangeOptions {
            renames: Renames::Split,
            ..ChangeOptions::default()
        };
        let changes = change_set(&view, &split, &mut Silent).unwrap();
        let difference = tree::difference(&self.original, &expected);
        assert_eq!(
            tree::said(&changes.changes),
            difference,
            "what the change set says"
        );
        self.check_diff(&view, &expected);
    }

    /// The diff, renames and all, turns a copy of the source into the plain copy.
    fn check_diff(&self, view: &View<'_>, expected: &Tree) {
        let changes = change_set(view, &ChangeOptions::default(), &mut Silent).unwrap();
        let mut patch = Vec::new();
        unified(
            view,
            &changes,
            Colour::Plain,
            &mut patch,
            &mut std::io::sink(),
        )
        .unwrap();
        let patched = self.project.source.with_file_name("patched");
        tree::copy(&self.project.source, &patched, Links::Split);
        self.remove_what_no_patch_can(&patched, expected);
        git_apply(&patched, &patch);
        let carried = tree::carried(&tree::read_directory(&patched));
        assert_eq!(
            carried,
            tree::carried(expected),
            "{}",
            String::from_utf8_lossy(&patch)
        );
        std::fs::remove_dir_all(patched).unwrap();
    }
}

impl World {
    /// Empty directories and FIFOs that are gone are listed beside a diff; something else may have
    /// taken their place.
    fn remove_what_no_patch_can(&self, dir: &Path, expected: &Tree) {
        for (path, node) in self.original.iter().rev() {
            let gone = expected.get(path).is_none_or(|now| now.kind != node.kind);
            match node.kind {
                EntryKind::Fifo if gone => std::fs::remove_file(path.under(dir)).unwrap(),
                // One that is not empty goes with its last file.
                EntryKind::Directory if gone => drop(std::fs::remove_dir(path.under(dir))),
                _ => {}
            }
        }
    }
}

fn git_apply(dir: &Path, patch: &[u8]) {
    if patch.is_empty() {
        return;
    }
    let mut git = Command::new("git")
        .args(["apply", "--whitespace=nowarn", "-"])
        .current_dir(dir)
        .env("GIT_CEILING_DIRECTORIES", dir.parent().unwrap())
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("git is needed by this test");
    git.stdin.take().unwrap().write_all(patch).unwrap();
    let output = git.wait_with_output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{told}\n{}",
        String::from_utf8_lossy(patch)
    );
}

impl World {
    /// Promotes everything; the source is then as the plain copy is, and the sandbox has no change.
    fn promote(&mut self) {
        let view = View::open(&self.project.sandbox).unwrap();
        let plan = promote::plan(
            &view,
            &Selection::default(),
            &Resolutions::default(),
            &mut Silent,
        )
        .unwrap();
        drop(view);
        assert!(plan.conflicts.is_empty(), "{:?}", plan.conflicts);
        let (refused, left_out) = (&plan.refused, &plan.left_out);
        assert!(
            refused.is_empty() && left_out.is_empty(),
            "{refused:?} {left_out:?}"
        );
        promote::apply(&self.project.sandbox, plan, Backup::None, &mut Silent).unwrap();
        let expected = tree::read_directory(&self.plain());
        assert_eq!(
            tree::read_directory(&self.project.source),
            expected,
            "what was promoted"
        );
        let view = View::open(&self.project.sandbox).unwrap();
        assert_eq!(
            tree::read(view.workspace()),
            expected,
            "what the workspace still shows"
        );
        let left = change_set(&view, &ChangeOptions::default(), &mut Silent).unwrap();
        assert_eq!(tree::said(&left.changes), [], "what is left to promote");
        self.original = expected;
        self.split_links();
    }

    /// What was promoted is no longer in an overlay's layer but below it, and there each name of a file is
    /// a file of its own when it is written to. A snapshot's layer keeps what it had.
    fn split_links(&self) {
        if self.project.backend() != BackendKind::Overlay {
            return;
        }
        let split = self.plain().with_file_name("split");
        tree::copy(&self.plain(), &split, Links::Split);
        std::fs::remove_dir_all(self.plain()).unwrap();
        std::fs::rename(split, self.plain()).unwrap();
    }

    /// The source to the last detail. What leaves a subvolume for the undo area is copied, so there
    /// an undo brings back other inodes.
    fn exact(&self) -> Exact {
        let mut exact = tree::exact(&self.project.source);
        if self.project.backend() == BackendKind::Btrfs {
            exact.values_mut().for_each(|(_, inode, _)| *inode = 0);
        }
        exact
    }

    fn undo(&self) {
        undo(
            &self.project.root,
            &self.project.source,
            &Which::Latest,
            &[],
            &mut Silent,
        )
        .unwrap();
    }
}

fn plant(seed: &[Operation]) -> impl FnOnce(&Path) {
    |source| perform(source, seed, Moves::Rename).unwrap()
}

fn history(length: usize) -> impl Strategy<Value = Vec<Operation>> {
    proptest::collection::vec(operation(), 0..length)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn a_rootless_overlay_tells_its_history(
        seed in history(30),
        first in history(12),
        second in history(12),
    ) {
        let world = World::overlay(OverlayXattr::User, &seed);
        world.run(&first);
        world.check();
        world.run(&second);
        world.check();
    }

    #[test]
    fn an_overlay_of_real_root_tells_its_history(
        seed in history(30),
        first in history(12),
        second in history(12),
    ) {
        let world = World::overlay(OverlayXattr::Trusted, &seed);
        world.run(&first);
        world.check();
        world.run(&second);
        world.check();
    }

    #[test]
    fn a_copy_tells_its_history(
        seed in history(30),
        first in history(12),
        second in history(12),
    ) {
        let world = World::new(BackendKind::Copy, &seed);
        world.run(&first);
        world.check();
        world.run(&second);
        world.check();
    }

    #[test]
    fn what_a_copy_promotes_is_its_history(
        seed in history(30),
        first in history(12),
        second in history(12),
    ) {
        promotes(World::new(BackendKind::Copy, &seed), &first, &second);
    }

    #[test]
    fn what_a_rootless_overlay_promotes_is_its_history(
        seed in history(30),
        first in history(12),
        second in history(12),
    ) {
        promotes(World::overlay(OverlayXattr::User, &seed), &first, &second);
    }

    #[test]
    fn what_an_overlay_of_real_root_promotes_is_its_history(
        seed in history(30),
        first in history(12),
        second in history(12),
    ) {
        promotes(World::overlay(OverlayXattr::Trusted, &seed), &first, &second);
    }
}

/// A link that was promoted, and then written to by one of its names.
#[test]
fn a_promoted_link_is_two_files_in_an_overlay() {
    let place = |name: usize| Place(vec![name]);
    let first = [
        Operation::Write(place(1), Vec::new()),
        Operation::Link(place(1), place(2)),
    ];
    let second = [Operation::Write(place(1), b"a".to_vec())];
    for xattr in [OverlayXattr::User, OverlayXattr::Trusted] {
        promotes(World::overlay(xattr, &[]), &first, &second);
    }
    promotes(World::new(BackendKind::Copy, &[]), &first, &second);
}

/// Two promotes, then both taken back.
fn promotes(mut world: World, first: &[Operation], second: &[Operation]) {
    let start = world.exact();
    world.run(first);
    world.promote();
    let between = world.exact();
    world.run(second);
    world.check();
    world.promote();
    if world.exact() != between {
        world.undo();
        assert_eq!(world.exact(), between, "after the undo");
    }
    if between != start {
        world.undo();
        assert_eq!(world.exact(), start, "after both undos");
    }
}

/// As above, on one btrfs: a subvolume and its snapshot for each case, so fewer of them.
fn over_snapshots(check: impl Fn(World, &[Operation], &[Operation])) {
    let mounted = Filesystem::Btrfs.mount(1024);
    let config = ProptestConfig {
        cases: 24,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let histories = (history(30), history(12), history(12));
    let outcome = TestRunner::new(config).run(&histories, |(seed, first, second)| {
        check(World::on_btrfs(&mounted.path(), &seed), &first, &second);
        Ok(())
    });
    outcome.unwrap_or_else(|failure| panic!("{failure}"));
}

#[test]
fn an_overlay_over_a_snapshot_tells_its_history() {
    over_snapshots(|world, first, second| {
        world.run(first);
        world.check();
        world.run(second);
        world.check();
    });
}

#[test]
fn what_an_overlay_over_a_snapshot_promotes_is_its_history() {
    over_snapshots(promotes);
}
