use std::fs;
use std::os::unix::fs::PermissionsExt;

use sandbox_model::BackendChoice;
use sandbox_model::Settings;

use super::*;
use crate::progress::Silent;
use crate::root::{CreateRequest, Root};
use crate::sandbox::Sandbox;
use crate::side::Side;

fn overlay() -> (tempfile::TempDir, Sandbox) {
    let dir = tempfile::tempdir().unwrap();
    let source = dir.path().join("project");
    fs::create_dir_all(source.join("sub")).unwrap();
    fs::write(source.join("file"), "old").unwrap();
    fs::write(source.join("sub/deep"), "old").unwrap();
    fs::set_permissions(&source, fs::Permissions::from_mode(0o751)).unwrap();
    let root = Root::open(&dir.path().join("root")).unwrap();
    let request = CreateRequest {
        name: None,
        source,
        backend: BackendChoice::Only(BackendKind::Overlay),
        settings: Settings::default(),
    };
    let sandbox = root.create(&request, &mut Silent).unwrap();
    (dir, sandbox)
}

/// Works in the mounted overlay of `sandbox`.
fn inside(sandbox: &Sandbox, work: impl FnOnce(&Dir) -> io::Result<()>) {
    let WorkspaceMount::Overlay {
        lower,
        upper,
        work: scratch,
        xattr,
    } = sandbox.mount()
    else {
        panic!("no overlay")
    };
    let layers = OverlayTrial {
        lower: &lower,
        upper: &upper,
        work: &scratch,
        xattr,
    };
    trial::overlay(&layers, |mount| {
        work(&Dir::from_fd(mount.try_clone_to_owned()?))
    })
    .unwrap();
}

fn write(dir: &Dir, name: &[u8], text: &str) -> io::Result<()> {
    io::Write::write_all(&mut dir.create_file(name)?, text.as_bytes())
}

#[test]
fn the_root_inside_looks_like_the_source() {
    let (_dir, sandbox) = overlay();
    let mode = fs::metadata(sandbox.dir.join(UPPER))
        .unwrap()
        .permissions()
        .mode();
    assert_eq!(mode & 0o7777, 0o751);
}

#[test]
fn a_mount_below_the_source_is_named() {
    let state = tempfile::tempdir().unwrap();
    let reason = Overlay.probe(Path::new("/"), state.path()).unwrap_err();
    assert!(reason.contains("mounted inside it"), "{reason}");
}

#[test]
fn absorbed_paths_leave_the_upper_and_the_rest_stays() {
    let (_dir, sandbox) = overlay();
    inside(&sandbox, |merged| {
        write(merged, b"new", "new")?;
        merged.unlink(b"file")?;
        let sub = merged.open_dir(b"sub")?;
        sub.unlink(b"deep")?;
        write(&sub, b"deep", "changed")?;
        write(&sub, b"other", "stays")
    });
    // As a promote of all but sub/other would leave the source.
    let source = sandbox.source();
    let upper = sandbox.dir.join(UPPER);
    fs::remove_file(source.join("file")).unwrap();
    let (from, to) = (Tree::open(&upper).unwrap(), Tree::open(source).unwrap());
    let path = |text: &str| RelPath::new(text.as_bytes()).unwrap();
    fs::remove_file(source.join("sub/deep")).unwrap();
    for changed in ["new", "sub/deep"] {
        let changed = path(changed);
        let (dir, name) = to.parent(&changed).unwrap();
        transfer::copy_entry(&from, &changed, &dir, name, Privileges::Strip).unwrap();
    }
    let paths = ["new", "file", "sub/deep"].map(path);
    Overlay.absorb(&sandbox.meta, &sandbox.dir, &paths).unwrap();
    let left = |dir: &str| from.list(&path(dir)).unwrap();
    assert_eq!(left("."), [b"sub".to_vec()]);
    assert_eq!(left("sub"), [b"other".to_vec()]);
    inside(&sandbox, |merged| {
        let sub = merged.open_dir(b"sub")?;
        let seen = io::read_to_string(sub.open_file(b"deep")?)?;
        if seen == "changed" && merged.stat(b"file")?.is_none() {
            Ok(())
        } else {
            Err(io::ErrorKind::Other.into())
        }
    });
}

#[test]
fn a_new_directory_leaves_the_upper_whole() {
    let (_dir, sandbox) = overlay();
    inside(&sandbox, |merged| {
        write(&merged.make_dir(b"fresh")?, b"file", "new")
    });
    let source = sandbox.source();
    let (from, to) = (
        Tree::open(&sandbox.dir.join(UPPER)).unwrap(),
        Tree::open(source).unwrap(),
    );
    let paths = ["fresh", "fresh/file"].map(|text| RelPath::new(text.as_bytes()).unwrap());
    for path in &paths {
        let (dir, name) = to.parent(path).unwrap();
        transfer::copy_entry(&from, path, &dir, name, Privileges::Strip).unwrap();
    }
    Overlay.absorb(&sandbox.meta, &sandbox.dir, &paths).unwrap();
    assert_eq!(from.list(&RelPath::root()).unwrap(), Vec::<Vec<u8>>::new());
}

#[test]
fn an_opaque_directory_that_hides_something_keeps_its_entries() {
    let (_dir, sandbox) = overlay();
    inside(&sandbox, |merged| {
        merged.remove_all(b"sub")?;
        write(&merged.make_dir(b"sub")?, b"other", "new")
    });
    let source = sandbox.source();
    let (from, to) = (
        Tree::open(&sandbox.dir.join(UPPER)).unwrap(),
        Tree::open(source).unwrap(),
    );
    let path = RelPath::new(b"sub/other").unwrap();
    let (dir, name) = to.parent(&path).unwrap();
    transfer::copy_entry(&from, &path, &dir, name, Privileges::Strip).unwrap();
    Overlay
        .absorb(&sandbox.meta, &sandbox.dir, &[path])
        .unwrap();
    inside(&sandbox, |merged| {
        let seen = merged.open_dir(b"sub")?.entries()?;
        if seen.len() == 1 {
            Ok(())
        } else {
            Err(io::ErrorKind::Other.into())
        }
    });
}
