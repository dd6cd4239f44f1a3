//! The final name has one version of the file whole, whatever the server does meanwhile, and
//! nothing that somebody else put beside it. The model test of `get::plan` does this without
//! sockets, and with every order of events.

use crate::fixture::{PATIENCE, generated, read_head};
use crate::get_hostile::{Answer, Origin, Place, SIZE, asked, once, proper, send, short};
use fullpipe_transfer::{Connections, GetOptions};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{MetadataExt, PermissionsExt};

/// A server of ranges whose file has no validators: half of the old one, and then the new one.
fn half_of_the_old(_: &str, stream: &mut TcpStream) {
    let head = format!("HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nContent-Length: {SIZE}\r\n\r\n");
    let _ = stream.write_all(head.as_bytes());
    let _ = stream.write_all(&vec![b'A'; SIZE as usize / 2]);
}

fn the_new(head: &str, stream: &mut TcpStream) {
    match asked(head) {
        Some((start, end)) => {
            let text = format!(
                "HTTP/1.1 206 Partial Content\r\nAccept-Ranges: bytes\r\nContent-Length: {}\r\n\
                 Content-Range: bytes {start}-{}/{SIZE}\r\n\r\n",
                end - start,
                end - 1
            );
            send(stream, &text, start, end);
        }
        None => {
            let text = format!(
                "HTTP/1.1 200 OK\r\nAccept-Ranges: bytes\r\nContent-Length: {SIZE}\r\n\r\n"
            );
            send(stream, &text, 0, SIZE);
        }
    }
}

#[test]
fn a_file_without_a_strong_validator_comes_whole_or_from_the_first_byte_again() {
    let (origin, place) = (Origin::start(&[half_of_the_old, the_new]), Place::new());
    place.fetch(origin.url(), GetOptions::default()).unwrap();
    place.assert_right();
    assert!(origin.heads().iter().all(|head| !head.contains("range:")), "{:?}", origin.heads());

    // Several connections share nothing either, and the result says why.
    let (origin, place) = (Origin::start(&[the_new]), Place::new());
    let four = GetOptions { connections: Connections::Fixed(4), ..once() };
    let got = place.fetch(origin.url(), four).unwrap();
    place.assert_right();
    assert_eq!(got.connections, 1);
    assert!(got.one_connection.is_some_and(|why| why.contains("ETag")), "{got:?}");

    // A later run cannot continue, and the error says so.
    let (origin, place) = (Origin::start(&[half_of_the_old]), Place::new());
    let error = place.fetch(origin.url(), once()).unwrap_err().to_string();
    assert!(error.contains("nothing of it is kept") && !error.contains("continues"), "{error}");
    assert_eq!(place.names(), [""; 0]);
}

/// With headway each time: the tries would never end if that made them count anew.
#[test]
fn a_server_that_always_breaks_is_not_asked_for_ever() {
    let (origin, place) = (Origin::start(&[half_of_the_old]), Place::new());
    let options = GetOptions { retries: 2, ..GetOptions::default() };
    place.fetch(origin.url(), options).unwrap_err();
    assert_eq!(origin.heads().len(), 3);
}

#[test]
fn another_url_under_the_same_name_begins_anew() {
    let (origin, place) = (Origin::start(&[short, proper]), Place::new());
    place.fetch(origin.url(), once()).unwrap_err();
    let other = origin.url().replace("/file", "/other");
    place.fetch(other, once()).unwrap();
    place.assert_right();
    assert!(!origin.heads()[1].contains("range:"), "{:?}", origin.heads());
}

fn two_framings(_: &str, stream: &mut TcpStream) {
    let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n";
    let _ = stream.write_all(head).and_then(|()| stream.write_all(b"5\r\nhello\r\n0\r\n\r\n"));
}

#[test]
fn a_body_with_two_lengths_is_no_file() {
    let (origin, place) = (Origin::start(&[two_framings as Answer]), Place::new());
    let error = place.fetch(origin.url(), once()).unwrap_err().to_string();
    assert!(error.contains("both Transfer-Encoding and Content-Length"), "{error}");
    assert_eq!(place.names(), [""; 0]);
}

/// An HTTP/2 frame.
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// HEADERS with `:status: 200`, DATA without END_STREAM, and then either the end or a reset.
#[test]
fn a_stream_that_is_reset_before_its_end_is_no_file() {
    let (data, headers) = (frame(0, 0, 1, b"hello"), frame(1, 4, 1, &[0x88]));
    for (last, right) in [
        (frame(0, 1, 1, b""), true),
        (frame(3, 0, 1, &0u32.to_be_bytes()), false), // NO_ERROR
        (frame(3, 0, 1, &8u32.to_be_bytes()), false), // CANCEL
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        let answer = [frame(4, 0, 0, b""), headers.clone(), data.clone(), last].concat();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            // The preface, SETTINGS, perhaps WINDOW_UPDATE: until the request's HEADERS.
            let mut seen = vec![0; 24];
            stream.read_exact(&mut seen).unwrap();
            let mut head = [0; 9];
            while head[3] != 1 {
                stream.read_exact(&mut head).unwrap();
                let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
                stream.read_exact(&mut vec![0; length as usize]).unwrap();
            }
            stream.write_all(&answer).unwrap();
            let _ = stream.read_to_end(&mut seen);
        });
        let place = Place::new();
        let options = GetOptions { http2_prior_knowledge: true, ..once() };
        let got = place.fetch(format!("http://{addr}/"), options);
        assert_eq!(got.is_ok(), right, "{got:?}");
        assert_eq!(place.file().exists(), right);
        server.join().unwrap();
    }
}

/// What has the name of a partial file without being the caller's own is not used or written to.
#[test]
fn what_others_put_beside_the_file_is_not_touched() {
    let record = |place: &Place, url: &str| {
        let text = format!(
            "{{\"fullpipe_get\":1,\"url\":\"{url}\",\"length\":{SIZE},\"validators\":\
             {{\"etag\":\"\\\"one\\\"\",\"last_modified\":null}},\"done\":[[0,1000000]]}}"
        );
        std::fs::write(place.file().with_extension("part.json"), text).unwrap();
    };
    for kind in ["a link", "writable by others", "a hard link", "a link as record"] {
        let (origin, place, away) = (Origin::start(&[proper]), Place::new(), Place::new());
        let (part, victim) = (place.file().with_extension("part"), away.file());
        std::fs::write(&victim, "precious").unwrap();
        record(&place, &origin.url());
        match kind {
            "a link" => std::os::unix::fs::symlink(&victim, &part).unwrap(),
            "a hard link" => std::fs::hard_link(&victim, &part).unwrap(),
            "writable by others" => {
                std::fs::write(&part, vec![b'E'; 1_000_000]).unwrap();
                std::fs::set_permissions(&part, PermissionsExt::from_mode(0o666)).unwrap();
            }
            _ => {
                let new = place.file().with_extension("part.json.new");
                std::os::unix::fs::symlink(&victim, new).unwrap();
            }
        }
        place.fetch(origin.url(), once()).unwrap();
        place.assert_right();
        assert_eq!(std::fs::read(&victim).unwrap(), b"precious", "{kind}");
        // As any file that is made here.
        std::fs::write(&victim, "").unwrap();
        let (file, usual) = (place.file().metadata().unwrap(), victim.metadata().unwrap());
        assert_eq!((file.mode(), file.uid()), (usual.mode(), usual.uid()), "{kind}");
    }
}

fn elsewhere(_: &str, stream: &mut TcpStream) {
    let addr = stream.local_addr().unwrap();
    let text = format!(
        "HTTP/1.1 302 Found\r\nLocation: http://localhost:{}/file\r\nContent-Length: 0\r\n\r\n",
        addr.port()
    );
    let _ = stream.write_all(text.as_bytes());
}

#[test]
fn no_secret_follows_a_redirect_to_another_server() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let addr = listener.local_addr().unwrap();
    let server = std::thread::spawn(move || {
        let answers: [Answer; 2] = [elsewhere, proper];
        answers.map(|answer| {
            let (mut stream, _) = listener.accept().unwrap();
            stream.set_read_timeout(Some(PATIENCE)).unwrap();
            let head = read_head(&mut stream);
            answer(&head, &mut stream);
            head.to_ascii_lowercase()
        })
    });
    let secrets = ["authorization", "cookie", "proxy-authorization", "x-api-key"];
    let field = |name: &str| (name.to_string(), "secret".to_string());
    let headers = secrets.iter().map(|name| field(name)).chain([field("accept-language")]);
    let options =
        GetOptions { headers: headers.collect(), family: fullpipe_transfer::Family::V4, ..once() };
    let place = Place::new();
    place.fetch(format!("http://{addr}/file"), options).unwrap();
    assert_eq!(std::fs::read(place.file()).unwrap(), generated(0, SIZE));
    let [first, second] = server.join().unwrap();
    for name in secrets {
        let line = format!("\n{name}: secret");
        assert!(first.contains(&line) && !second.contains(&line), "{name}: {second}");
    }
    assert!(second.contains("\naccept-language: secret"), "{second}");
}
