//! One promise, kept whatever the server keeps its records in.
//!
//! On SQLite and files a server starts in no time, so each promise is a test and has its own. A database server
//! takes longer: there all promises of a file share a server, which also shows that they do not
//! disturb each other.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;

use crate::{Options, Server, Storage};

/// A promise and its name.
pub type Promise = (&'static str, fn(&Server));

/// How many promises are asked for at a time.
const AT_ONCE: usize = 4;

/// Every promise must be kept by one server on this storage. Those that are not are named together.
pub fn keep_all(storage: Storage, promises: &[Promise]) {
    let server = Options::on(storage).start();
    let left = Mutex::new(promises.iter());
    let broken = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_ONCE {
            scope.spawn(|| {
                loop {
                    let next = left.lock().expect("nobody panics with it").next();
                    let Some((name, promise)) = next else {
                        return;
                    };
                    if let Err(panic) = catch_unwind(AssertUnwindSafe(|| promise(&server))) {
                        let problem = format!("{name}: {}", said(panic.as_ref()));
                        broken.lock().expect("nobody panics with it").push(problem);
                    }
                }
            });
        }
    });
    let broken = broken.into_inner().expect("nobody panicked with it");
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()))
        .unwrap_or_default()
}

/// Makes tests of promises, for every storage.
#[macro_export]
macro_rules! on_every_storage {
    ($($(#[$meta:meta])* fn $promise:ident($server:ident: $kind:ty) $body:block)+) => {
        $($(#[$meta])* fn $promise($server: $kind) $body)+

        mod sqlite_and_files {
            $(
                #[test]
                fn $promise() {
                    super::$promise(&$crate::Options::on($crate::Storage::SqliteAndFiles).start());
                }
            )+
        }

        const PROMISES: &[$crate::Promise] = &[$((stringify!($promise), $promise)),+];

        #[test]
        fn postgres_and_s3() {
            $crate::keep_all($crate::Storage::PostgresAndS3, PROMISES);
        }

        #[test]
        fn mariadb_and_files() {
            $crate::keep_all($crate::Storage::MariadbAndFiles, PROMISES);
        }
    };
}
