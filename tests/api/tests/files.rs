//! Files: what goes into a workspace and what comes out of it.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read as _, Write as _};
use std::net::Ipv4Addr;

use sandbox_api_tests::{Answer, Call, Server, encoded, eventually, is_time, on_every_storage};
use serde_json::{Value, json};

const LARGE: usize = 10 << 20;
const MOST: usize = 100 << 20;

fn names(object: &Value) -> BTreeSet<&str> {
    object
        .as_object()
        .unwrap()
        .keys()
        .map(String::as_str)
        .collect()
}

#[track_caller]
fn download(server: &Server, session: &str, path: &str) -> Answer {
    server.get(&format!("/sessions/{session}/files/{}", encoded(path)))
}

/// An upload whose path comes after its file.
fn path_last(server: &Server, session: &str, path: &str, content: &str) -> Call {
    let part = |head: &str, text: &str| {
        format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\n{text}\r\n")
    };
    let file = part("name=\"file\"; filename=\"own\"", content);
    let form = format!("{file}{}--b--\r\n", part("name=\"path\"", path));
    let target = format!("/api/v1/sessions/{session}/files/upload");
    let call = server.call("POST", &target);
    call.body("multipart/form-data; boundary=b", form)
}

/// Waits until there is nothing but this in a workspace. What was broken off is gone when the server has noticed;
/// until then only code sees it.
#[track_caller]
fn until_there_is_only(server: &Server, session: &str, names: &str) {
    eventually(&format!("only {names:?}"), || {
        (server.shell(session, "ls -A") == names).then_some(())
    });
}

/// The names and kinds in a directory.
#[track_caller]
fn list(server: &Server, session: &str, query: &str) -> Vec<(String, String)> {
    let page = server
        .get(&format!("/sessions/{session}/files{query}"))
        .json(200);
    let text = |file: &Value, field: &str| file[field].as_str().unwrap().to_owned();
    page["files"]
        .as_array()
        .unwrap()
        .iter()
        .map(|file| (text(file, "name"), text(file, "kind")))
        .collect()
}

/// Bytes that show when they are not where they belong.
fn pattern(length: usize) -> Vec<u8> {
    (0..length)
        .map(|place| (place ^ (place >> 8) ^ (place >> 16)) as u8)
        .collect()
}

/// What is in a tar archive, as tar itself reads it: names, with a slash after directories.
fn members(archive: &[u8]) -> BTreeSet<String> {
    let mut tar = std::process::Command::new("tar")
        .arg("-t")
        .env("LC_ALL", "C.UTF-8")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = tar.stdin.take().unwrap();
    let archive = archive.to_vec();
    let writer = std::thread::spawn(move || stdin.write_all(&archive).unwrap());
    let output = tar.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success());
    String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| line.trim_start_matches("./").to_owned())
        .filter(|line| !line.is_empty())
        .collect()
}

on_every_storage! {
    fn what_is_uploaded_is_there_for_code_and_comes_back(server: &Server) {
        let id = server.session();
        let content = pattern(1_000_000);
        let answer = server.upload(&id, "deep/er/data.bin", &content).json(200);
        assert_eq!(answer, json!({ "session_id": id, "path": "deep/er/data.bin", "size": content.len() }));
        let result = server.run(&id, "python", "import hashlib\ndef handler(event):\n    data = open('/workspace/deep/er/data.bin', 'rb').read()\n    return [len(data), data[-1]]");
        assert_eq!(result["return_value"], json!([content.len(), content.last()]), "{result:#}");

        let answer = download(server, &id, "deep/er/data.bin").expect(200);
        assert_eq!(answer.body, content);
        assert_eq!(answer.header("content-type"), Some("application/octet-stream"));
        assert_eq!(answer.header("content-length"), Some("1000000"));
        assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
        assert_eq!(answer.header("accept-ranges"), Some("bytes"));
        let disposition = answer.header("content-disposition").unwrap();
        assert!(disposition.starts_with("attachment; filename=\"data.bin\""), "{disposition}");

        // Over what was there, whole or not at all; code may do with it what it likes.
        server.upload(&id, "deep/er/data.bin", b"short").json(200);
        assert_eq!(download(server, &id, "deep/er/data.bin").expect(200).text(), "short");
        assert_eq!(server.shell(&id, "echo more >> deep/er/data.bin; cat deep/er/data.bin; ls -A . deep/er"), "shortmore\n.:\ndeep\n\ndeep/er:\ndata.bin");
        server.upload(&id, "empty", b"").json(200);
        let empty = download(server, &id, "empty").expect(200);
        assert_eq!((empty.header("content-length"), empty.body.len()), (Some("0"), 0));
    }

    fn names_are_what_they_are(server: &Server) {
        let id = server.session();
        for name in [
            "with space", "quote\"d and 'quoted'", "ünïcödé/文件.txt", "\u{1f600}", "percent%41", "a+b&c=d;e#f?g", "back\\slash",
            "-rf", "*", "$(id)", "upload", "dir/upload", "~", "a:b", "trailing.", "...", "..a", "a..b", "tab\tand\nline",
        ] {
            let content = format!("content of {name}");
            // A form's own quoting is no path's business: the path is a part of its own.
            assert_eq!(server.upload(&id, name, content.as_bytes()).json(200)["path"], name);
            let answer = download(server, &id, name).expect(200);
            assert_eq!(answer.text(), content, "{name:?}");
            let disposition = answer.header("content-disposition").unwrap();
            let last = name.rsplit('/').next().unwrap();
            let utf8: String = last.bytes().map(|byte| match byte {
                b if b.is_ascii_alphanumeric() || b"-_.".contains(&b) => char::from(b).to_string(),
                b => format!("%{b:02X}"),
            }).collect();
            assert!(disposition.ends_with(&format!("filename*=UTF-8''{utf8}")), "{disposition}");
            assert!(!disposition.contains('\n') && disposition.is_ascii(), "{disposition}");
            server.delete(&format!("/sessions/{id}/files/{}", encoded(name))).expect(204);
            download(server, &id, name).error(404, "Sandbox.FileNotFound");
        }
        // Without a path, the file's own name counts.
        let target = format!("/api/v1/sessions/{id}/files/upload");
        let answer = server.call("POST", &target).form(None, "own name.txt", b"x").send().json(200);
        assert_eq!(answer["path"], "own name.txt");
    }

    fn a_form_that_is_none_is_refused(server: &Server) {
        let id = server.session();
        let target = format!("/api/v1/sessions/{id}/files/upload");
        let post = |kind: &str, body: &str| server.call("POST", &target).body(kind, body).send();
        post("application/json", "{}").error(400, "Sandbox.InvalidParameter");
        post("multipart/form-data", "x").error(400, "Sandbox.InvalidParameter");
        post("multipart/form-data; boundary=b", "").error(400, "Sandbox.InvalidParameter");
        post("multipart/form-data; boundary=b", "--b--\r\n").invalid("file");
        let part = |name: &str| format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\nx\r\n--b--\r\n");
        post("multipart/form-data; boundary=b", &part("path")).invalid("file");
        post("multipart/form-data; boundary=b", &part("other")).error(400, "Sandbox.InvalidParameter");
        post("multipart/form-data; boundary=b", &part("file")).invalid("path");
        let long = "x".repeat(5000);
        server.upload(&id, &long, b"x").invalid("path");
        server.call("POST", &target).form(None, "", b"x").send().invalid("path");
        assert_eq!(list(server, &id, ""), []);
    }

    fn path_and_file_come_in_either_order_and_once_each(server: &Server) {
        let id = server.session();
        let target = format!("/api/v1/sessions/{id}/files/upload");
        let (path, file) = ("name=\"path\"", "name=\"file\"; filename=\"in.txt\"");
        let send = |parts: &[&str]| {
            let part = |head: &&str| format!("--b\r\nContent-Disposition: form-data; {head}\r\n\r\nout.txt\r\n");
            let form: String = parts.iter().map(part).chain(["--b--\r\n".to_owned()]).collect();
            server.call("POST", &target).body("multipart/form-data; boundary=b", form).send()
        };
        for parts in [[path, path, file], [path, file, path], [file, path, path]] {
            send(&parts).invalid("path: is there twice");
        }
        for parts in [[path, file, file], [file, path, file], [file, file, path]] {
            send(&parts).invalid("file: is there twice");
        }
        for parts in [[path, file, "name=\"other\""], [file, "name=\"other\"", path], ["name=\"other\"", file, path]] {
            send(&parts).invalid("another part");
        }
        assert_eq!(list(server, &id, ""), []);
        until_there_is_only(server, &id, "");
        for parts in [[path, file], [file, path]] {
            assert_eq!(send(&parts).json(200), json!({ "session_id": id, "path": "out.txt", "size": 7 }));
            assert_eq!(server.shell(&id, "cat out.txt; rm out.txt; ls -A"), "out.txt");
        }
        assert_eq!(send(&[file]).json(200)["path"], "in.txt");
        // Where each went is written down, newest first.
        let audit = server.get("/audit?limit=200").json(200);
        let written = audit["records"].as_array().unwrap().iter();
        let written = written.filter(|record| record["action"] == "file.upload" && record["object"] == id.as_str());
        let written: Vec<_> = written.map(|record| &record["detail"]["path"]).collect();
        assert_eq!(written, ["in.txt", "out.txt", "out.txt"]);
    }

    fn a_file_whose_path_comes_last_is_put_there_whole(server: &Server) {
        let id = server.session();
        server.upload(&id, "deep/file", b"before").json(200);
        let answer = path_last(server, &id, "deep/file", "after").send().json(200);
        assert_eq!((&answer["path"], &answer["size"]), (&json!("deep/file"), &json!(5)));
        path_last(server, &id, "new/er/file", "new").send().json(200);
        assert_eq!(server.shell(&id, "cat deep/file new/er/file; ls -A . deep new/er"), "afternew.:\ndeep\nnew\n\ndeep:\nfile\n\nnew/er:\nfile");
    }

    fn a_path_that_is_refused_after_its_file_leaves_nothing(server: &Server) {
        let id = server.session();
        server.shell(&id, "mkdir dir; echo kept > file; ln -s /etc etc");
        let (name, long) = ("x".repeat(256), "x/".repeat(2100));
        for path in ["", ".", "..", "../out", "/planted", "new/../out", "a\0b", "dir", ".sandbox-upload-1", &name, &format!("new/{name}/out"), &long] {
            let error = path_last(server, &id, path, "planted").send().invalid("path: ");
            // As if it had come before.
            assert_eq!(server.upload(&id, path, b"planted").invalid("path: ")["error_detail"], error["error_detail"], "{path}");
        }
        for path in ["etc/planted", "file/below"] {
            let status = path_last(server, &id, path, "planted").send().status;
            assert!([400, 404].contains(&status), "{path}: {status}");
            assert_eq!(server.upload(&id, path, b"planted").status, status, "{path}");
        }
        until_there_is_only(server, &id, "dir\netc\nfile");
        assert_eq!(server.shell(&id, "cat file; ls -A dir"), "kept");
        assert!(!std::path::Path::new("/etc/planted").exists() && !std::path::Path::new("/planted").exists());
    }

    fn an_upload_that_breaks_off_was_never_there(server: &Server) {
        let id = server.session();
        let target = format!("/api/v1/sessions/{id}/files/upload");
        server.upload(&id, "file", b"before").json(200);
        for path in [Some("file"), None] {
            let form = server.call("POST", &target).form(path, "file", &vec![b'x'; 2 << 20]);
            drop(form.cut(1 << 20).write().unwrap());
            until_there_is_only(server, &id, "file");
        }
        // In the middle of the path.
        let form = path_last(server, &id, &"file/".repeat(200), &"x".repeat(1 << 20));
        drop(form.cut((1 << 20) + 500).write().unwrap());
        until_there_is_only(server, &id, "file");
        assert_eq!(download(server, &id, "file").expect(200).text(), "before");
        assert_eq!(list(server, &id, ""), [("file".to_owned(), "file".to_owned())]);
    }

    fn what_is_not_there_is_not_found(server: &Server) {
        let id = server.session();
        server.upload(&id, "dir/file", b"x").json(200);
        for path in ["missing", "dir/missing", "file/below", "dir/file/below", "missing/deep"] {
            let error = download(server, &id, path).error(404, "Sandbox.FileNotFound");
            assert_eq!(error["description"], format!("File not found in workspace: {path}"));
            server.delete(&format!("/sessions/{id}/files/{path}")).error(404, "Sandbox.FileNotFound");
        }
        server.get(&format!("/sessions/{id}/files?path=missing")).error(404, "Sandbox.FileNotFound");
        server.get(&format!("/sessions/{id}/archive?path=missing")).error(404, "Sandbox.FileNotFound");
        // A directory is no file, nor is a pipe or a device.
        server.shell(&id, "mkfifo pipe; python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"socket\")'");
        for path in ["pipe", "socket"] {
            download(server, &id, path).invalid("path: it is not a regular file");
        }
        for path in ["dir", "dir/"] {
            download(server, &id, path).error(400, "Sandbox.InvalidParameter");
        }
        let error = download(server, &id, "dir").invalid("path: 'dir' is a directory");
        assert!(error["solution"].as_str().unwrap().contains("/archive"), "{error}");
        server.get(&format!("/sessions/{id}/files?path=dir/file")).error(404, "Sandbox.FileNotFound");
    }

    fn directories_are_listed_by_name_and_in_pages(server: &Server) {
        let id = server.session();
        server.shell(&id, "mkdir -p d/e; printf 12345 > b; ln -s b a; mkfifo p; touch .hidden d/x d/y d/z; : > 'c ü'");
        let page = server.get(&format!("/sessions/{id}/files")).json(200);
        assert_eq!(names(&page), ["files", "next_cursor", "path"].into());
        assert_eq!((&page["path"], &page["next_cursor"]), (&json!(""), &Value::Null));
        let kinds = |pairs: &[(&str, &str)]| -> Vec<(String, String)> {
            pairs.iter().map(|&(name, kind)| (name.to_owned(), kind.to_owned())).collect()
        };
        let all = [(".hidden", "file"), ("a", "link"), ("b", "file"), ("c ü", "file"), ("d", "directory"), ("p", "other")];
        assert_eq!(list(server, &id, ""), kinds(&all));
        let file = &page["files"][2];
        assert_eq!(names(file), ["kind", "modified_at", "name", "size"].into());
        assert_eq!(file["size"], 5);
        assert!(is_time(&file["modified_at"]));
        assert_eq!(list(server, &id, "?path=d"), kinds(&[("e", "directory"), ("x", "file"), ("y", "file"), ("z", "file")]));
        assert_eq!(list(server, &id, "?path=d/e"), []);

        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = server.get(&format!("/sessions/{id}/files?limit=4{cursor}")).json(200);
            let files = page["files"].as_array().unwrap();
            assert!(files.len() <= 4);
            seen.extend(files.iter().map(|file| file["name"].as_str().unwrap().to_owned()));
            match page["next_cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={}", encoded(next)),
                None => break,
            }
        }
        assert_eq!(seen, all.map(|(name, _)| name));
        for (query, field) in [("limit=0", "limit"), ("limit=1001", "limit"), ("limit=x", "limit"), ("path=..", "path"), ("path=/etc", "path"), ("path=d/../..", "path"), ("cursor=%E6%96%87", "cursor: ")] {
            server.get(&format!("/sessions/{id}/files?{query}")).invalid(field);
        }
    }

    fn files_and_directories_are_deleted(server: &Server) {
        let id = server.session();
        server.shell(&id, "mkdir -p d/e/f; touch d/e/f/g top; ln -s /etc/passwd out; ln -s d inner; chmod 000 d/e/f/g; mkdir -p locked/in; chmod 555 locked");
        let delete = |path: &str| server.delete(&format!("/sessions/{id}/files/{path}"));
        delete("top").expect(204);
        delete("top").error(404, "Sandbox.FileNotFound");
        delete("inner").expect(204);
        delete("out").expect(204);
        assert_eq!(server.shell(&id, "ls; ls d"), "d\nlocked\ne");
        delete("d").expect(204);
        delete("locked").expect(204);
        assert_eq!(server.shell(&id, "ls -A"), "");
        for path in [".", "", "./", "%2e", "x/../y", ".."] {
            let answer = delete(path);
            assert!([400, 404, 405].contains(&answer.status), "{path}: {}", answer.text());
        }
        server.shell(&id, "touch works");
    }

    fn a_directory_comes_as_an_archive(server: &Server) {
        let id = server.session();
        server.shell(&id, "mkdir -p d/e; echo hi > d/file; ln -s file d/link; echo 'x' > 'top ü'; mkfifo d/pipe");
        let whole = server.get(&format!("/sessions/{id}/archive")).expect(200);
        assert_eq!(whole.header("content-type"), Some("application/x-tar"));
        assert!(whole.header("content-disposition").unwrap().contains("workspace.tar"));
        let listed = members(&whole.body);
        for name in ["d/", "d/e/", "d/file", "d/link"] {
            assert!(listed.contains(name), "{name}: {listed:?}");
        }
        let part = server.get(&format!("/sessions/{id}/archive?path=d")).expect(200);
        assert!(part.header("content-disposition").unwrap().contains("d.tar"));
        let listed = members(&part.body);
        assert!(listed.iter().any(|name| name.ends_with("file")), "{listed:?}");
        assert!(!listed.iter().any(|name| name.contains("top")), "{listed:?}");
        for path in ["..", "/etc", "d/../..", "%2e%2e"] {
            server.get(&format!("/sessions/{id}/archive?path={path}")).error(400, "Sandbox.InvalidParameter");
        }
        // A link that leads out is a link in the archive, and nothing of what it leads to.
        server.shell(&id, "ln -s /etc etc; ln -s /etc/passwd passwd");
        let archive = server.get(&format!("/sessions/{id}/archive")).expect(200);
        assert!(!archive.text().contains("root:x:0"));
        let through = server.get(&format!("/sessions/{id}/archive?path=etc"));
        assert!(through.status >= 400, "{}", through.status);
    }

    fn parts_of_a_file_are_had_by_ranges(server: &Server) {
        let id = server.session();
        let content = pattern(1000);
        server.upload(&id, "file", &content).json(200);
        let ask = |range: &str| server.call("GET", &format!("/api/v1/sessions/{id}/files/file")).header("Range", range).send();
        for (range, from, to) in [
            ("bytes=0-0", 0, 1), ("bytes=0-99", 0, 100), ("bytes=990-", 990, 1000), ("bytes=-5", 995, 1000),
            ("bytes=-5000", 0, 1000), ("bytes=10-99999", 10, 1000), ("bytes=999-999", 999, 1000),
        ] {
            let answer = ask(range).expect(206);
            assert_eq!(answer.body, content[from..to], "{range}");
            assert_eq!(answer.header("content-range"), Some(&*format!("bytes {from}-{}/1000", to - 1)), "{range}");
            assert_eq!(answer.header("content-length"), Some(&*(to - from).to_string()));
        }
        // Several ranges, and units that are not bytes, mean everything.
        for range in ["bytes=0-1,5-6", "lines=1-2"] {
            assert_eq!(ask(range).expect(200).body, content, "{range}");
        }
        for range in ["bytes=1000-", "bytes=1000-1001", "bytes=5000-6000", "bytes=-0"] {
            let answer = ask(range);
            assert_eq!(answer.header("content-range"), Some("bytes */1000"), "{range}");
            answer.error(416, "Sandbox.InvalidParameter");
        }
        for range in ["bytes=5-2", "bytes=x-y", "bytes=", "bytes=--1", "bytes=1"] {
            ask(range).error(400, "Sandbox.InvalidParameter");
        }
    }

    fn a_large_file_comes_by_a_link_that_needs_no_key(server: &Server) {
        let id = server.session();
        let content = pattern(LARGE);
        server.upload(&id, "large ü.bin", &content).json(200);
        server.upload(&id, "just-below", &content[1..]).json(200);
        assert_eq!(download(server, &id, "just-below").expect(200).body.len(), LARGE - 1);

        let answer = download(server, &id, "large ü.bin").expect(307);
        let location = answer.header("location").unwrap().to_owned();
        let follow = |location: &str| {
            let (host, target) = match location.strip_prefix("http://") {
                Some(rest) => {
                    let (host, rest) = rest.split_once('/').unwrap();
                    (host.parse().unwrap(), format!("/{rest}"))
                }
                None => (server.address(), location.to_owned()),
            };
            sandbox_api_tests::Call::new(host, "GET", &target).from(Ipv4Addr::new(127, 0, 2, 1))
        };
        let got = follow(&location).send();
        assert_eq!(got.status, 200, "{}", got.text());
        assert!(got.body == content);
        let disposition = got.header("content-disposition").unwrap();
        assert!(disposition.contains("attachment") && disposition.contains("large%20%C3%BC.bin"), "{disposition}");
        let part = follow(&location).header("Range", "bytes=5-9").send();
        assert_eq!((part.status, &part.body[..]), (206, &content[5..10]));

        // Whoever changes it has nothing: not another file, session, name or time.
        let other = server.session();
        server.upload(&other, "large ü.bin", &content).json(200);
        download(server, &other, "large ü.bin").expect(307);
        let mut tampered = vec![location.replace(&id, &other), location.replacen("large", "small", 1)];
        let (path, query) = location.split_once('?').unwrap();
        tampered.push(path.to_owned());
        for (place, pair) in query.split('&').enumerate() {
            let (name, value) = pair.split_once('=').unwrap();
            let mut pairs: Vec<_> = query.split('&').map(str::to_owned).collect();
            pairs.remove(place);
            tampered.push(format!("{path}?{}", pairs.join("&")));
            let last = if value.ends_with('1') { '2' } else { '1' };
            let changed: String = value.chars().take(value.chars().count() - 1).chain([last]).collect();
            pairs.insert(place, format!("{name}={changed}"));
            tampered.push(format!("{path}?{}", pairs.join("&")));
        }
        for bad in tampered {
            let answer = follow(&bad).send();
            assert!(answer.status >= 400, "{bad}: {}", answer.status);
            assert!(answer.body.len() < 10_000);
        }

        // What the file is when it is asked for is what comes; and after the session's end, too.
        server.upload(&id, "large ü.bin", &[&content[..], b"more"].concat()).json(200);
        server.delete(&format!("/sessions/{id}")).json(200);
        let location = download(server, &id, "large ü.bin").expect(307).header("location").unwrap().to_owned();
        assert_eq!(follow(&location).send().body.len(), LARGE + 4);
    }

    fn a_file_has_a_largest_size_and_its_session_a_disk(server: &Server) {
        let id = server.session();
        let target = format!("/api/v1/sessions/{id}/files/upload");
        let mut large = vec![b'x'; MOST + 1];
        let error = server.call("POST", &target).form(Some("too-large"), "f", &large).send().error(400, "Sandbox.PayloadTooLarge");
        assert!(error["error_detail"].as_str().unwrap().contains(&MOST.to_string()), "{error}");
        download(server, &id, "too-large").error(404, "Sandbox.FileNotFound");
        large.truncate(MOST);
        let answer = server.call("POST", &target).form(Some("just-fits"), "f", &large).send().json(200);
        assert_eq!(answer["size"], MOST);
        assert_eq!(server.shell(&id, "stat -c %s just-fits; ls -A"), format!("{MOST}\njust-fits"));
    }

    fn no_path_leads_out_of_the_workspace(server: &Server) {
        let id = server.session();
        let outside = server.base().join("outside-secret");
        std::fs::write(&outside, "a secret of the host").unwrap();
        let depth = "../".repeat(20);
        let outside = outside.to_str().unwrap();
        let absolute = format!("{depth}{}", &outside[1..]);
        let mut targets = vec![absolute.clone(), outside.to_owned(), format!("/{outside}"), format!("a/../../{absolute}"), format!("./../{absolute}")];
        targets.extend(["../../../../etc/passwd", "/etc/passwd", "/proc/self/environ", "..", "../", "a/..", "a\0b", ".\0./x", "\\..\\..\\etc\\passwd"].map(str::to_owned));
        let mut raw: Vec<String> = targets.iter().map(|path| encoded(path)).collect();
        raw.extend(targets.iter().map(|path| encoded(path).replace('.', "%2e").replace('/', "%2F")));
        raw.extend(targets.iter().map(|path| encoded(path).replace('.', "%252e").replace('/', "%252f")));
        raw.extend(["%c0%ae%c0%ae/%c0%ae%c0%ae/etc/passwd", "%ff", "%2e%2e%5cetc", "..%c1%9cetc", "%u002e%u002e/etc/passwd", "..;/..;/etc/passwd"].map(str::to_owned));
        for path in &raw {
            for method in ["GET", "DELETE"] {
                let answer = server.call(method, &format!("/api/v1/sessions/{id}/files/{path}")).send();
                assert!([400, 404, 405].contains(&answer.status), "{method} {path}: {} {}", answer.status, answer.text());
                assert!(!answer.text().contains("root:x:0") && !answer.text().contains("a secret of the host"), "{path}");
            }
        }
        for path in &targets {
            let answer = server.upload(&id, path, b"planted");
            if answer.status == 200 {
                // A name that only looks like a path.
                assert!(path.contains('\\'), "{path}: {}", answer.text());
            } else {
                answer.error(400, "Sandbox.InvalidParameter");
            }
        }
        assert_eq!(std::fs::read_to_string(outside).unwrap(), "a secret of the host");
    }

    fn no_planted_link_leads_out_of_the_workspace(server: &Server) {
        let id = server.session();
        let outside = server.base().join("linked-secret");
        std::fs::write(&outside, "a secret of the host").unwrap();
        let outside = outside.to_str().unwrap();
        let script = format!(
            "ln -s {outside} absolute; ln -s / root; ln -s /etc etc; ln -s ../../../../../../..{outside} relative; \
             ln -s /proc/self/root proc; ln -s /proc/self/cwd cwd; ln -s relative chain; mkdir -p d; ln -s ../../.. d/up; \
             ln -s /workspace/real inside; echo real > real; ln -s real beside; ln -s loop loop"
        );
        server.shell(&id, &script);
        for path in ["absolute", "relative", "chain", "etc/passwd", "etc/hostname", "proc/etc/passwd", "d/up/etc/passwd", "loop",
            &format!("root{outside}"), "root/etc/passwd", "cwd/real"]
        {
            let answer = download(server, &id, path);
            assert!([400, 404].contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
        }
        assert_eq!(download(server, &id, "beside").expect(200).text(), "real\n");
        for path in ["etc/planted", "root/tmp/planted", "proc/tmp/planted", "d/up/planted", "absolute/x"] {
            let answer = server.upload(&id, path, b"planted");
            assert!([400, 404].contains(&answer.status), "{path}: {} {}", answer.status, answer.text());
        }
        // Written over, a link is a file; what it led to stays.
        server.upload(&id, "absolute", b"planted").json(200);
        assert_eq!(std::fs::read_to_string(outside).unwrap(), "a secret of the host");
        assert_eq!(server.shell(&id, "cat absolute; test -L absolute || echo a file"), "planteda file");
        for path in ["etc/passwd", "root/etc", "d/up/etc"] {
            let answer = server.delete(&format!("/sessions/{id}/files/{path}"));
            assert!([400, 404].contains(&answer.status), "{path}: {}", answer.status);
        }
        for directory in ["etc", "root", "d/up", "proc"] {
            let answer = server.get(&format!("/sessions/{id}/files?path={directory}"));
            assert!([400, 404].contains(&answer.status), "{directory}: {} {}", answer.status, answer.text());
        }
        assert!(std::path::Path::new("/etc/passwd").exists());
    }

    fn a_race_for_a_path_is_not_won(server: &Server) {
        use std::time::{Duration, Instant};
        let id = server.session();
        // It leads inside, or out of the workspace: to where there is something to read, or room to write.
        let code = "import os\nos.mkdir('real')\nopen('real/passwd', 'w').write('inside')\n\
            os.symlink('real', 'raced')\nopen('begun', 'w').write('x')\n\
            while True:\n    for to in ('/etc', 'real', '/tmp', 'real'):\n        \
            os.symlink(to, 'next'); os.rename('next', 'raced')";
        let racer = server.submit(&id, json!({ "language": "python", "code": code, "timeout": 600 }));
        server.until_file(&id, "begun");
        let deadline = Instant::now() + Duration::from_secs(60);
        let race = |ask: &dyn Fn(usize) -> Answer, is_inside: &dyn Fn(usize, &Answer) -> bool| {
            let (mut inside, mut refused) = (0, 0);
            // On a busy machine whoever swaps may be kept from it for a while.
            while (inside == 0 || refused == 0 || inside + refused < 60) && Instant::now() < deadline {
                let number = inside + refused;
                let answer = ask(number);
                match answer.status {
                    400 | 404 | 409 => refused += 1,
                    _ => {
                        assert!(is_inside(number, &answer), "{}: {}", answer.status, answer.text());
                        inside += 1;
                    }
                }
            }
            assert!(inside > 0 && refused > 0, "inside {inside} times, refused {refused} times");
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                race(&|_| download(server, &id, "raced/passwd"), &|_, answer| {
                    answer.status == 200 && answer.text() == "inside"
                });
            });
            scope.spawn(|| {
                let upload = |number: usize| server.upload(&id, "raced/planted", number.to_string().as_bytes());
                race(&upload, &|number, answer| {
                    let planted = download(server, &id, "real/planted");
                    answer.status == 200 && planted.status == 200 && planted.text() == number.to_string()
                });
            });
        });
        server.post(&format!("/executions/{racer}/cancel"), &json!({})).json(200);
    }

    fn files_outlive_their_session(server: &Server) {
        let id = server.session();
        server.shell(&id, "mkdir d; echo kept > d/file");
        server.delete(&format!("/sessions/{id}")).json(200);
        assert_eq!(download(server, &id, "d/file").expect(200).text(), "kept\n");
        assert_eq!(list(server, &id, "?path=d"), [("file".to_owned(), "file".to_owned())]);
        assert!(members(&server.get(&format!("/sessions/{id}/archive")).expect(200).body).contains("d/file"));
        server.upload(&id, "new", b"x").error(409, "Sandbox.StateConflict");
    }

    fn many_files_at_once_are_all_there(server: &Server) {
        let id = server.session();
        std::thread::scope(|scope| {
            for writer in 0..4 {
                let (server, id) = (&server, &id);
                scope.spawn(move || {
                    for number in 0..10 {
                        let name = format!("d{writer}/f{number}");
                        server.upload(id, &name, name.as_bytes()).json(200);
                    }
                });
            }
        });
        let found: BTreeMap<String, String> = (0..4).flat_map(|writer| (0..10).map(move |number| format!("d{writer}/f{number}")))
            .map(|name| (name.clone(), download(server, &id, &name).expect(200).text())).collect();
        assert!(found.iter().all(|(name, content)| name == content), "{found:?}");
        let mut slow = server.call("GET", &format!("/api/v1/sessions/{id}/files/d0/f0")).open();
        let mut content = String::new();
        slow.content().read_to_string(&mut content).unwrap();
        assert_eq!(content, "d0/f0");
    }
}
