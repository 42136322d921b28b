//! Sessions that have an image for a system.
#![allow(clippy::unwrap_used)]

mod server;

use std::path::{Path, PathBuf};
use std::process::Command;

use sandbox_executor::Ending;
use sandbox_model::execution::Language;
use sandbox_runtime::{Image, SessionSpec};
use server::{id, printed, request, served, shell, spec};

/// An unpacked root with a shell and little else, put together from the host's.
fn image(beside: &Path) -> PathBuf {
    let image = beside.parent().unwrap().join("image");
    for directory in ["etc", "usr/bin", "var/tmp", "var/lib", "tmp", "srv"] {
        std::fs::create_dir_all(image.join(directory)).unwrap();
    }
    for program in ["bash", "cat", "ls", "id", "touch", "mkdir", "stat"] {
        let program = Path::new("/usr/bin").join(program);
        let libraries = Command::new("ldd").arg(&program).output().unwrap().stdout;
        let libraries = String::from_utf8(libraries).unwrap();
        let libraries = libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'));
        for file in libraries.map(Path::new).chain([program.as_path()]) {
            let place = image.join(file.strip_prefix("/").unwrap());
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::copy(file, place).unwrap();
        }
    }
    std::os::unix::fs::symlink("usr/bin", image.join("bin")).unwrap();
    std::fs::write(image.join("etc/release"), "the image's").unwrap();
    std::fs::write(image.join("tmp/left"), "").unwrap();
    std::fs::write(image.join("hello"), "a file at the top").unwrap();
    std::os::unix::fs::symlink("/../../../../root", image.join("escape")).unwrap();
    image
}

fn with(image: &Path) -> SessionSpec {
    SessionSpec {
        image: Image::Directory(image.to_owned()),
        ..spec('a')
    }
}

#[test]
fn a_session_sees_its_image_and_nothing_of_the_host() {
    served(async |state, local, _| {
        let image = image(state);
        let raised = local.raise(with(&image)).await.unwrap();
        assert!(raised.limits_enforced.memory);
        let line = raised.line;
        assert_eq!(
            printed(&line, "cat /etc/release; echo; id -u; cat /hello").await,
            "the image's\n1000\na file at the top"
        );
        let tops = printed(&line, "ls /").await;
        for name in tops.lines() {
            let known = [
                "bin",
                "dev",
                "escape",
                "etc",
                "hello",
                "lib",
                "lib64",
                "proc",
                "run",
                "srv",
                "tmp",
                "usr",
                "var",
                "workspace",
            ];
            assert!(known.contains(&name), "{tops}");
        }
        assert_eq!(
            printed(&line, "ls -A /tmp /var/tmp; echo x > /tmp/x; echo > w; ls").await,
            "/tmp:\n\n/var/tmp:\nw"
        );
        for attempt in [
            "touch /etc/x",
            "touch /x",
            "touch /srv/x",
            "echo x > /hello",
            "cat /etc/passwd",
            "ls /escape/",
            "ls /root",
            "ls /home",
            "touch /usr/bin/x",
        ] {
            let outcome = shell(&line, attempt).await;
            assert_ne!(outcome.result.exit_code, 0, "{attempt}: {outcome:?}");
        }
        let look = format!("ls {}", state.display());
        assert_ne!(shell(&line, &look).await.result.exit_code, 0);
        // What it has not is told.
        let outcome = line
            .execute(request(Language::Python, "1"), || {})
            .await
            .unwrap();
        assert_eq!(outcome.ending, Ending::Crashed);
        assert!(outcome.error.unwrap().contains("python3"));
        assert_eq!(std::fs::read_dir(image.join("tmp")).unwrap().count(), 1);
        assert!(!image.join("workspace").exists() && !image.join("proc").exists());
    });
}

#[test]
fn an_image_without_the_usual_directories_will_do() {
    served(async |state, local, _| {
        let image = image(state);
        for directory in ["var", "srv"] {
            std::fs::remove_dir_all(image.join(directory)).unwrap();
        }
        let line = local.raise(with(&image)).await.unwrap().line;
        assert_eq!(
            printed(&line, "echo x > /var/tmp/x; cat /var/tmp/x").await,
            "x"
        );
        local.end(&id('a')).await.unwrap();
        // Or one whose directories lead elsewhere.
        std::os::unix::fs::symlink("/etc", image.join("var")).unwrap();
        let line = local.raise(with(&image)).await.unwrap().line;
        assert_eq!(printed(&line, "cat /var/release").await, "the image's");
        local.end(&id('a')).await.unwrap();
        std::fs::remove_file(image.join("var")).unwrap();
        std::fs::create_dir(image.join("var")).unwrap();
        std::os::unix::fs::symlink("/etc", image.join("var/tmp")).unwrap();
        let line = local.raise(with(&image)).await.unwrap().line;
        assert_eq!(printed(&line, "cat /var/tmp/release").await, "the image's");
    });
}

#[test]
fn what_is_no_image_is_told() {
    served(async |state, local, _| {
        let file = state.parent().unwrap().join("file");
        std::fs::write(&file, "").unwrap();
        for (path, reason) in [
            ("/", "kept in it"),
            ("relative", "not absolute"),
            ("/nowhere", "No such file"),
            (file.to_str().unwrap(), "not a directory"),
            (state.to_str().unwrap(), "kept in it"),
            (state.parent().unwrap().to_str().unwrap(), "kept in it"),
        ] {
            let error = local
                .raise(with(Path::new(path)))
                .await
                .unwrap_err()
                .to_string();
            assert!(error.contains(path) && error.contains(reason), "{error}");
        }
    });
}
