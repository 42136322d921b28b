//! Packages that code installs for itself.
#![allow(clippy::unwrap_used)]

mod session;

use sandbox_executor::{Executor, Outcome, Request};
use sandbox_model::execution::Language::{self, Javascript, Python, Shell};
use serde_json::json;
use session::{in_session, request, returned};

/// Writes wheels of the versions 1.0, 2.0 and 3.0 of a package with a module and a console script.
const WHEELS: &str = r#"
import zipfile

for version in "1.0", "2.0", "3.0":
    about = f"tiny-{version}.dist-info"
    files = {
        "tiny.py": f"VERSION = '{version}'\ndef main():\n    print('tiny', VERSION)\n",
        f"{about}/METADATA": f"Metadata-Version: 2.1\nName: tiny\nVersion: {version}\n",
        f"{about}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        f"{about}/entry_points.txt": "[console_scripts]\ntiny-hello = tiny:main\n",
    }
    files[f"{about}/RECORD"] = "".join(f"{name},,\n" for name in [*files, f"{about}/RECORD"])
    with zipfile.ZipFile(f"tiny-{version}-py3-none-any.whl", "w") as wheel:
        for name, text in files.items():
            wheel.writestr(name, text)
"#;

const VERSION: &str = "import tiny\ndef handler(event):\n    return tiny.VERSION";

/// Runs `code`, for as long as package managers take on a machine that has other things to do.
async fn run(executor: &Executor, language: Language, code: &str) -> Outcome {
    let asked = Request {
        timeout_seconds: 300,
        ..request(language, code)
    };
    executor.execute(&asked).await
}

fn must_succeed(outcome: &Outcome) {
    assert_eq!(outcome.result.exit_code, 0, "{outcome:?}");
}

async fn shell(executor: &Executor, code: &str) -> String {
    let outcome = run(executor, Shell, code).await;
    must_succeed(&outcome);
    outcome.result.stdout
}

#[test]
fn the_execution_after_pip_install_imports_the_package() {
    in_session(async |executor| {
        // Now an interpreter waits that has seen no directory of packages.
        must_succeed(&run(executor, Python, WHEELS).await);
        shell(executor, "pip install --no-index tiny-1.0-*.whl").await;
        let (waited, cold) = tokio::join!(
            run(executor, Python, VERSION),
            run(executor, Python, VERSION)
        );
        assert_eq!(returned(&waited), json!("1.0"));
        assert_eq!(returned(&cold), json!("1.0"));
        assert_eq!(shell(executor, "tiny-hello").await, "tiny 1.0\n");
        // The next one waits since before the upgrade.
        shell(executor, "python3 -m pip install --no-index tiny-2.0-*.whl").await;
        assert_eq!(
            returned(&run(executor, Python, VERSION).await),
            json!("2.0")
        );
        let upgrade = "import subprocess, sys, glob\nsubprocess.run([sys.executable, '-m', 'pip', \
                       'install', '--no-index', *glob.glob('tiny-3.0-*.whl')], check=True)";
        must_succeed(&run(executor, Python, upgrade).await);
        assert_eq!(
            returned(&run(executor, Python, VERSION).await),
            json!("3.0")
        );
        shell(executor, "pip uninstall --yes tiny").await;
        let gone = run(executor, Python, VERSION).await;
        assert!(
            gone.result.stderr.contains("No module named 'tiny'"),
            "{gone:?}"
        );
    });
}

#[test]
fn a_directory_that_a_pth_file_adds_is_found_at_once() {
    in_session(async |executor| {
        let lib = "mkdir -p lib $(python3 -m site --user-site); echo 'VERSION = 5' > lib/tiny.py";
        shell(executor, lib).await;
        must_succeed(&run(executor, Python, "").await);
        let add = "echo /workspace/lib > $(python3 -m site --user-site)/tiny.pth";
        shell(executor, add).await;
        assert_eq!(returned(&run(executor, Python, VERSION).await), json!(5));
        // The largest event arrives whole when another interpreter takes it over.
        let change = "touch $(python3 -m site --user-site)/other.pth";
        shell(executor, change).await;
        let asked = Request {
            event: json!("x".repeat(900_000)),
            ..request(
                Python,
                "import tiny\ndef handler(event):\n    return len(event)",
            )
        };
        assert_eq!(returned(&executor.execute(&asked).await), json!(900_000));
    });
}

#[test]
fn pip_in_a_virtual_environment_installs_there() {
    in_session(async |executor| {
        must_succeed(&run(executor, Python, WHEELS).await);
        let code = "python3 -m venv apart && apart/bin/pip install --no-index tiny-1.0-*.whl && \
                    apart/bin/tiny-hello && test ! -e .local";
        let printed = shell(executor, code).await;
        assert!(printed.ends_with("tiny 1.0\n"), "{printed}");
    });
}

#[test]
fn the_session_decides_where_pip_installs() {
    in_session(async |executor| {
        must_succeed(&run(executor, Python, WHEELS).await);
        let set = [("PIP_BREAK_SYSTEM_PACKAGES".to_owned(), "0".to_owned())];
        executor.configure(&set.into()).unwrap();
        let refused = run(executor, Shell, "pip install --no-index tiny-1.0-*.whl").await;
        assert!(
            refused.result.stderr.contains("externally-managed"),
            "{refused:?}"
        );
    });
}

#[test]
fn the_execution_after_npm_install_requires_the_package() {
    let pack = |version: &str| {
        format!(
            "mkdir -p tiny && echo '{{\"name\": \"tiny\", \"version\": \"{version}\", \"bin\": \
             {{\"tiny-hello\": \"hello.js\"}}}}' > tiny/package.json && echo \"module.exports = \
             '{version}'\" > tiny/index.js && printf '#!/usr/bin/env node\\nconsole.log(\"tiny {version}\")\\n' > \
             tiny/hello.js && npm pack --offline --silent ./tiny"
        )
    };
    let install = "npm install --offline --no-audit --no-fund";
    let version = "exports.handler = () => require('tiny')";
    in_session(async |executor| {
        // Now an interpreter waits that has seen no package.
        must_succeed(&run(executor, Javascript, "").await);
        for number in ["1.0.0", "2.0.0"] {
            shell(executor, &pack(number)).await;
            shell(executor, &format!("{install} ./tiny-{number}.tgz")).await;
            let (waited, cold) = tokio::join!(
                run(executor, Javascript, version),
                run(executor, Javascript, version)
            );
            assert_eq!(returned(&waited), json!(number), "{waited:?}");
            assert_eq!(returned(&cold), json!(number));
        }
        shell(
            executor,
            "rm -r node_modules package.json package-lock.json",
        )
        .await;
        shell(executor, &format!("{install} --global ./tiny-1.0.0.tgz")).await;
        assert_eq!(shell(executor, "tiny-hello").await, "tiny 1.0.0\n");
        let found = run(executor, Javascript, version).await;
        assert_eq!(returned(&found), json!("1.0.0"), "{found:?}");
    });
}
