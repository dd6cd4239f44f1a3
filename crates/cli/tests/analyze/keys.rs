//! HTTP/2's windows inside TLS, with keys of a file and with those that the capture has itself.

use super::{Ended, Folder, analyze, refused};
use fullpipe_flow::capture::{self, write_ng};
use serde_json::Value;
use std::path::{Path, PathBuf};

fn path(name: &str) -> String {
    let captures = "../flow/tests/frames/captures";
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(captures).join(name);
    path.to_str().unwrap().to_owned()
}

/// The capture as pcapng, with the key log in it.
fn with_secrets(name: &str) -> Vec<u8> {
    let log = std::fs::read(path(&format!("{name}.keys"))).unwrap();
    let mut file = Vec::new();
    write_ng::section(&mut file);
    let padded = log.len().next_multiple_of(4);
    let length = (20 + padded) as u32;
    for word in [10, length, 0x544c_534b, log.len() as u32] {
        file.extend(u32::to_le_bytes(word));
    }
    file.extend(&log);
    file.resize(file.len() + padded - log.len(), 0);
    file.extend(length.to_le_bytes());
    let mut has_interface = false;
    let source = std::fs::File::open(path(&format!("{name}.pcap"))).unwrap();
    capture::read(source, |packet| {
        if !std::mem::replace(&mut has_interface, true) {
            write_ng::interface("", packet.link_type, &mut file);
        }
        write_ng::packet(0, packet.at, packet.data, packet.original_length as u32, "", &mut file);
    })
    .unwrap();
    file
}

fn words(ended: &Ended) -> String {
    ended.out.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn connection(ended: &Ended) -> Value {
    let mut value: Value = serde_json::from_str(&ended.out).unwrap();
    value["connections"][0].take()
}

#[test]
fn the_answer_names_the_stream_and_its_window_exactly() {
    let (capture, keys) = (path("tls13-chacha.pcap"), path("tls13-chacha.keys"));
    let named = analyze(&[&capture, "--keys", &keys]);
    assert_eq!((named.code, named.err.as_str()), (0, ""));
    let says = words(&named);
    assert!(says.contains("% of the time for its window of 4,096 bytes"), "{says}");
    assert!(says.contains("stream 1 waited"), "{says}");
    assert!(says.contains("HTTP/2 server to client: 1 stream"), "{says}");
    let unknown = analyze(&[&capture]);
    assert!(!words(&unknown).contains("4,096"), "{}", unknown.out);
    let slow = analyze(&[&path("key-update.pcap"), "--keys", &path("key-update.keys")]);
    assert!(words(&slow).contains("HTTP/2's windows never bound"), "{}", slow.out);
    assert!(!words(&slow).contains("application window"), "{}", slow.out);
}

#[test]
fn json_has_the_windows_on_any_number_of_threads_and_from_the_captures_own_keys() {
    let folder = Folder::new("keys");
    for name in ["tls13-aes256", "tls12-aes128"] {
        let (capture, keys) = (path(&format!("{name}.pcap")), path(&format!("{name}.keys")));
        let one = connection(&analyze(&[&capture, "--json", "--keys", &keys]));
        let http2 = &one["client_to_server"]["http2"];
        assert_eq!(http2["worst"][0]["window_bytes"], 4096, "{http2}");
        assert_eq!(http2["data_bytes"], 24_576, "{http2}");
        assert_eq!(http2["is_whole"], true);
        assert!(http2["held_us"].as_u64().is_some_and(|held| held > 100_000), "{http2}");
        let two = connection(&analyze(&[&capture, "--json", "--keys", &keys, "--threads", "2"]));
        assert_eq!(one, two, "{name}");
        let own = folder.file(&format!("{name}.pcapng"), &with_secrets(name));
        for threads in ["1", "2"] {
            let found = connection(&analyze(&[&own, "--json", "--threads", threads]));
            assert_eq!(one, found, "{name}");
        }
        assert_eq!(refused("connection", &[one]), None);
    }
}

#[test]
fn rows_have_columns_of_the_windows() {
    let (capture, keys) = (path("tls13-aes128.pcap"), path("tls13-aes128.keys"));
    let rows = analyze(&[&capture, "--csv", "--keys", &keys]);
    let mut lines = rows.out.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let names = lines.next().unwrap();
    let row = lines.find(|row| row.contains(&"server_to_client")).unwrap();
    let of = |name: &str| row[names.iter().position(|one| *one == name).unwrap()];
    assert_eq!((of("http2_waiting_stream"), of("http2_stream_window_bytes")), ("1", "4096"));
    assert!(of("http2_held_us").parse::<u64>().unwrap() > 100_000, "{row:?}");
}

#[test]
fn keys_that_are_none_are_refused_and_those_of_others_are_told() {
    let folder = Folder::new("no-keys");
    let capture = path("tls13-aes128.pcap");
    let wrong = folder.file("wrong.keys", b"-----BEGIN PRIVATE KEY-----\n");
    let refused = analyze(&[&capture, "--keys", &wrong]);
    assert_eq!(refused.code, 2, "{}", refused.err);
    assert!(refused.err.contains("none of its 2 lines is a secret"), "{}", refused.err);
    let missing = analyze(&[&capture, "--keys", "/nowhere/keys"]);
    assert!(missing.err.contains("read /nowhere/keys: No such file"), "{}", missing.err);
    assert!(missing.err.contains("SSLKEYLOGFILE"), "{}", missing.err);
    let others = analyze(&[&capture, "--keys", &path("tls13-aes256.keys")]);
    assert_eq!(others.code, 0);
    assert!(others.err.contains("the keys of 1 connections opened none"), "{}", others.err);
    assert!(Path::new(&capture).exists());
}

#[test]
fn what_is_anonymized_has_neither_keys_nor_contents_and_the_same_answer() {
    let folder = Folder::new("anonymized-keys");
    let own = folder.file("own.pcapng", &with_secrets("tls13-aes256"));
    let shared = folder.0.join("shared.pcapng");
    let shared = shared.to_str().unwrap();
    let ended = super::run(&["anonymize", &own, "-o", shared], &[]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    let bytes = std::fs::read(shared).unwrap();
    assert!(!bytes.windows(20).any(|part| part == b"CLIENT_TRAFFIC_SECRE"));
    let found = connection(&analyze(&[shared, "--json"]));
    assert!(found["client_to_server"]["http2"].is_null());
}
