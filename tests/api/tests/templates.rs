//! Templates: what sessions are made from.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::BTreeSet;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use sandbox_api_tests::{Options, Server, Storage, eventually, is_time, on_every_storage};
use serde_json::{Value, json};

const FIELDS: [&str; 11] = [
    "base_image",
    "created_at",
    "default_resources",
    "id",
    "image",
    "is_active",
    "name",
    "pre_installed_packages",
    "runtime_type",
    "security_context",
    "updated_at",
];

fn names(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

fn listed(page: &Value) -> Vec<String> {
    let id = |template: &Value| template["id"].as_str().unwrap().to_owned();
    page["templates"]
        .as_array()
        .unwrap()
        .iter()
        .map(id)
        .collect()
}

fn plain(id: &str) -> Value {
    json!({ "id": id, "name": "A template", "image": "host" })
}

on_every_storage! {
    fn three_templates_are_there_from_the_start(server: &Server) {
        for (id, cpu, memory, disk) in [
            ("python-basic", "1", "512Mi", "1Gi"),
            ("python-datascience", "2", "2Gi", "5Gi"),
            ("nodejs-basic", "1", "512Mi", "1Gi"),
        ] {
            let template = server.get(&format!("/templates/{id}")).json(200);
            assert_eq!(names(&template), FIELDS.into());
            let expected = json!({ "cpu": cpu, "memory": memory, "disk": disk, "max_processes": 128 });
            assert_eq!(template["default_resources"], expected);
            assert_eq!((&template["is_active"], &template["runtime_type"]), (&json!(true), &json!("local")));
        }
    }

    fn a_template_is_made_looked_at_changed_and_deleted(server: &Server) {
        let asked = json!({
            "id": "my.template_1-x",
            "name": "Mine, ü",
            "image": "host",
            "base_image": "debian:13",
            "runtime_type": "local",
            "default_resources": { "cpu": "0.5", "memory": "1Gi", "disk": "2Gi", "max_processes": 64 },
            "pre_installed_packages": ["json", "@types/node"],
            "security_context": { "user": "1000:1000", "privileged": false },
            "is_active": true,
        });
        let made = server.post("/templates", &asked).json(201);
        assert_eq!(names(&made), FIELDS.into());
        for (field, value) in asked.as_object().unwrap() {
            assert_eq!(made[field], *value, "{field}");
        }
        assert!(is_time(&made["created_at"]));
        assert_eq!(made["updated_at"], made["created_at"]);
        let path = "/templates/my.template_1-x";
        assert_eq!(server.get(path).json(200), made);
        server.post("/templates", &asked).error(409, "Sandbox.StateConflict");

        let changed = server.put(path, &json!({ "name": "Other", "default_resources": { "cpu": "2" } })).json(200);
        assert_eq!(changed["name"], "Other");
        let expected = json!({ "cpu": "2", "memory": "1Gi", "disk": "2Gi", "max_processes": 64 });
        assert_eq!(changed["default_resources"], expected);
        for field in ["id", "image", "base_image", "pre_installed_packages", "is_active", "created_at"] {
            assert_eq!(changed[field], made[field], "{field}");
        }
        assert!(changed["updated_at"].as_str() > made["updated_at"].as_str());
        // Look-ups are remembered; what was changed is not.
        assert_eq!(server.get(path).json(200), changed);

        // Nothing at all says as much as an empty object, and changes as much.
        let same = server.call("PUT", &format!("/api/v1{path}")).send().json(200);
        assert_eq!((&same["name"], &same["default_resources"]), (&changed["name"], &expected));

        let deleted = server.delete(path).expect(204);
        assert!(deleted.body.is_empty());
        server.get(path).error(404, "Sandbox.TemplateNotFound");
        server.delete(path).error(404, "Sandbox.TemplateNotFound");
        server.put(path, &json!({ "name": "Gone" })).error(404, "Sandbox.TemplateNotFound");
        server.post("/templates", &asked).json(201);
    }

    fn what_a_template_does_not_say_is_usual(server: &Server) {
        let made = server.post("/templates", &plain("usual")).json(201);
        for (field, value) in [
            ("base_image", Value::Null),
            ("runtime_type", json!("local")),
            ("default_resources", json!({ "cpu": "1", "memory": "512Mi", "disk": "1Gi", "max_processes": 128 })),
            ("pre_installed_packages", json!([])),
            ("security_context", json!({ "user": "1000:1000", "privileged": false })),
            ("is_active", json!(true)),
        ] {
            assert_eq!(made[field], value, "{field}");
        }
        // As the seed called them.
        let alias = json!({ "template_id": "by-alias", "name": "Alias", "image_url": "host" });
        assert_eq!(server.post("/templates", &alias).json(201)["image"], "host");
        let image = image();
        let renamed = server.put("/templates/by-alias", &json!({ "image_url": image.path() })).json(200);
        assert_eq!(renamed["image"], json!(image.path()));
    }

    fn a_template_that_may_not_be_is_refused(server: &Server) {
        for (field, value) in [
            ("id", json!("")),
            ("id", json!("a b")),
            ("id", json!("../x")),
            ("id", json!("x".repeat(65))),
            ("name", json!("")),
            ("name", json!("x".repeat(10_000))),
            ("image", json!("")),
            ("image", json!("a b")),
            ("image", json!("/srv/../etc")),
            ("image", json!("$(id)")),
            ("runtime_type", json!("vmware")),
            ("default_resources", json!({ "cpu": "64" })),
            ("default_resources", json!({ "memory": "1Mi" })),
            ("default_resources", json!({ "disk": "1Ti" })),
            ("default_resources", json!({ "max_processes": 1 })),
            ("pre_installed_packages", json!(["a; rm -rf /"])),
            ("pre_installed_packages", json!(vec!["numpy"; 1000])),
            ("security_context", json!({ "user": "0:0" })),
            ("security_context", json!({ "user": "root" })),
            ("security_context", json!({ "user": "1000:0" })),
            ("security_context", json!({ "privileged": true })),
            ("security_context", json!({ "capabilities": ["SYS_ADMIN"] })),
            ("colour", json!("red")),
        ] {
            let mut asked = plain("refused");
            asked[field] = value;
            server.post("/templates", &asked).invalid(field);
        }
        server.get("/templates/refused").error(404, "Sandbox.TemplateNotFound");
        server.post("/templates", &plain("to-be-changed")).json(201);
        for (field, value) in [
            ("id", json!("other")),
            ("runtime_type", json!("docker")),
            ("base_image", json!("debian")),
            ("name", json!("")),
            ("image", json!("a b")),
            ("default_resources", json!({ "cpu": "0.1" })),
            ("security_context", json!({ "user": "0:0" })),
            ("security_context", json!({ "privileged": true })),
        ] {
            server.put("/templates/to-be-changed", &json!({ field: value })).invalid(field);
        }
        let unchanged = server.get("/templates/to-be-changed").json(200);
        assert_eq!(unchanged["updated_at"], unchanged["created_at"]);
    }

    fn refuses_an_image_that_no_session_could_have(server: &Server) {
        server.post("/templates", &plain("well")).json(201);
        let data = server.data();
        let sessions = data.join("sessions");
        let images = ["/", "/root", "/nonexist", "/etc/passwd", "/etc", "python:3.11", "registry.example/a/b:1.2", "Host"];
        for image in images.into_iter().chain([data.to_str().unwrap(), sessions.to_str().unwrap()]) {
            let mut asked = plain("no-image");
            asked["image"] = json!(image);
            for answer in [server.post("/templates", &asked), server.put("/templates/well", &json!({ "image": image }))] {
                let error = answer.invalid("image: ");
                assert!(error["error_detail"].as_str().unwrap().contains(image), "{error}");
                assert!(error["solution"].as_str().unwrap().contains("`host`"), "{error}");
            }
        }
        server.get("/templates/no-image").error(404, "Sandbox.TemplateNotFound");
        assert_eq!(server.get("/templates/well").json(200)["image"], "host");
        // One whose image is gone can still be taken out of use.
        let image = image();
        server.put("/templates/well", &json!({ "image": image.path() })).json(200);
        drop(image);
        server.put("/templates/well", &json!({ "is_active": false })).json(200);
    }

    fn a_template_in_use_is_not_deleted_but_deprecated(server: &Server) {
        server.post("/templates", &plain("in-use")).json(201);
        let id = server.session_with(json!({ "template_id": "in-use" }));
        let error = server.delete("/templates/in-use").error(400, "Sandbox.InvalidParameter");
        assert!(error["solution"].as_str().unwrap().contains("deprecate"), "{error}");
        server.put("/templates/in-use", &json!({ "is_active": false })).json(200);
        // Those that are there go on, and no new one is made.
        assert_eq!(server.shell(&id, "echo still"), "still");
        server.post("/sessions", &json!({ "template_id": "in-use" })).invalid("template_id");
        server.delete(&format!("/sessions/{id}")).json(200);
        server.delete("/templates/in-use").expect(204);
        // Its sessions are still told of, and their files are still there.
        assert_eq!(server.get(&format!("/sessions/{id}")).json(200)["template_id"], "in-use");
        server.get(&format!("/sessions/{id}/files")).json(200);
    }

    fn active_templates_are_listed_and_others_when_asked(server: &Server) {
        for (id, is_active) in [("listed-1", true), ("listed-2", false), ("listed-3", true)] {
            let mut template = plain(id);
            template["is_active"] = json!(is_active);
            server.post("/templates", &template).json(201);
        }
        let ours = |page: Value| -> Vec<String> {
            listed(&page).into_iter().filter(|id| id.starts_with("listed-")).collect()
        };
        assert_eq!(ours(server.get("/templates?limit=200").json(200)), ["listed-3", "listed-1"]);
        let all = server.get("/templates?limit=200&include_inactive=true").json(200);
        assert_eq!(names(&all), ["next_cursor", "templates", "total"].into());
        assert_eq!(ours(all), ["listed-3", "listed-2", "listed-1"]);
        server.get("/templates?include_inactive=maybe").invalid("include_inactive");
        server.get("/templates?limit=0").invalid("limit");
        server.get("/templates?cursor=x").invalid("cursor");
        // Page by page, each once.
        let (mut seen, mut query) = (Vec::new(), String::new());
        loop {
            let page = server.get(&format!("/templates?limit=2{query}")).json(200);
            seen.extend(listed(&page));
            match page["next_cursor"].as_str() {
                Some(cursor) => query = format!("&cursor={cursor}"),
                None => break,
            }
        }
        assert_eq!(seen.iter().collect::<BTreeSet<_>>().len(), seen.len(), "{seen:?}");
        assert!(seen.contains(&"python-basic".to_owned()), "{seen:?}");
    }

    fn a_list_of_templates_tells_how_many_there_are_and_is_read_from_anywhere(server: &Server) {
        for number in 0..60 {
            server.post("/templates", &plain(&format!("many-{number}"))).json(201);
        }
        let list = |query: &str| server.get(&format!("/templates?{query}")).json(200);
        // Others make and delete templates meanwhile, and not all the time.
        eventually("the pages are the list", || {
            let whole = list("limit=200");
            let ids = listed(&whole);
            let parts = [list("limit=20"), list("limit=20&offset=20"), list("limit=200&offset=40")];
            let usual = list("");
            let beyond = list(&format!("offset={}", ids.len()));
            let is_so = parts.iter().chain([&usual, &beyond, &whole]).all(|page| page["total"] == ids.len())
                && parts.iter().flat_map(listed).eq(ids.iter().cloned())
                && parts.iter().map(|part| listed(part).len()).eq([20, 20, ids.len() - 40])
                && listed(&usual) == ids[..50]
                && listed(&beyond).is_empty()
                && ids.len() > 60;
            is_so.then_some(())
        });
        for (query, field) in [("limit=201", "limit"), ("offset=-1", "offset"), ("offset=x", "offset"), ("offset=1&cursor=x", "cursor")] {
            server.get(&format!("/templates?{query}")).invalid(field);
        }
    }

    fn what_a_template_promises_is_checked_when_a_session_starts(server: &Server) {
        let mut template = plain("promises-much");
        template["pre_installed_packages"] = json!(["surely-not-installed-anywhere"]);
        server.post("/templates", &template).json(201);
        let answer = server.post("/sessions", &json!({ "template_id": "promises-much" }));
        assert!(answer.status >= 400, "{}", answer.text());
        assert!(answer.text().contains("surely-not-installed-anywhere"), "{}", answer.text());
        let failed = server.get("/sessions?template_id=promises-much").json(200);
        assert_eq!(failed["sessions"][0]["status"], "failed", "{failed:#}");
        let error = failed["sessions"][0]["error"].as_str().unwrap();
        assert!(error.contains("surely-not-installed-anywhere"), "{error}");
    }
}

/// An unpacked root with a shell and one program, put together from the host's.
fn image() -> tempfile::TempDir {
    let image = tempfile::Builder::new()
        .prefix("sandbox-image.")
        .tempdir_in("/srv")
        .unwrap();
    let open = PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(image.path(), open).unwrap();
    for program in ["/usr/bin/bash", "/usr/bin/cat"] {
        let libraries = Command::new("ldd").arg(program).output().unwrap().stdout;
        let libraries = String::from_utf8(libraries).unwrap();
        let libraries = libraries.split_whitespace();
        let libraries = libraries.filter(|word| word.starts_with('/'));
        for file in libraries.chain([program]) {
            let place = image.path().join(file.trim_start_matches('/'));
            std::fs::create_dir_all(place.parent().unwrap()).unwrap();
            std::fs::copy(file, place).unwrap();
        }
    }
    std::os::unix::fs::symlink("usr/bin", image.path().join("bin")).unwrap();
    image
}

#[test]
fn an_image_without_python_is_looked_at_by_what_it_has() {
    let image = image();
    let server = Options::on(Storage::SqliteAndFiles).start();
    let made_with = |id: &str, packages: &[&str]| {
        let mut template = plain(id);
        template["image"] = json!(image.path());
        template["pre_installed_packages"] = json!(packages);
        server.post("/templates", &template).json(201);
        server.post("/sessions", &json!({ "template_id": id }))
    };
    let made = made_with("small", &["cat", "bash"]);
    assert_eq!(made.status, 201, "{}", made.text());
    let refused = made_with("smaller", &["cat", "numpy", "left-pad==1"]).text();
    let expected =
        "does not have: numpy, left-pad==1; there is no python3 and no node in its image";
    assert!(refused.contains(expected), "{refused}");
    std::fs::remove_file(image.path().join("usr/bin/bash")).unwrap();
    let refused = made_with("smallest", &["cat", "numpy"]).text();
    let expected = ": cat, numpy; there is no python3 and no node and no bash in its image";
    assert!(refused.contains(expected), "{refused}");
}
