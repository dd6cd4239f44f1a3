//! Every key of the guide's table "Every key of a scenario", as a bare value and as a text, as the
//! table promises.

use fullpipe_model::scenario::{File, Scenario};
use std::path::Path;

/// A key, what stands around it, and the ways to write one value of it. All of them must mean the
/// same.
struct Key {
    name: &'static str,
    around: &'static str,
    ways: &'static [&'static str],
}

const fn key(name: &'static str, around: &'static str, ways: &'static [&'static str]) -> Key {
    Key { name, around, ways }
}

/// `@` in `around` is where `name = value` stands.
const KEYS: &[Key] = &[
    key("name", "@", &["'x'"]),
    key("description", "@", &["'x'"]),
    key("repeat", "@", &["10", "'10'"]),
    key("kernel", "@", &["'6.1'"]),
    key(
        "sysctl",
        "[hosts.client]\n@",
        &["{ 'net.ipv4.tcp_sack' = 1 }", "{ 'net.ipv4.tcp_sack' = '1' }"],
    ),
    key("congestion_control", "[hosts.server]\n@", &["'bbr'"]),
    key("initcwnd", "[hosts.server]\n@", &["10", "'10'"]),
    key("initrwnd", "[hosts.client]\n@", &["10", "'10'"]),
    key("cpu", "[hosts.client]\n@", &["1", "'1'"]),
    key("nice", "[hosts.client]\n@", &["-5", "'-5'"]),
    key("cpu_hog_nice", "[hosts.client]\ncpu = 0\n@", &["-5", "'-5'"]),
    key("window_agent", "[hosts.client]\n@", &["true"]),
    key(
        "window_budget",
        "[hosts.client]\nwindow_agent = true\n@",
        &["67108864", "'67108864'", "'64MiB'"],
    ),
    key("rtt", "[link]\n@", &["'50ms'", "'0.05s'"]),
    key("rate", "[link]\n@", &["'100mbit'", "'12.5MB/s'"]),
    key("delay", "[link]\n@", &["'25ms'", "'25000us'"]),
    key("queue", "[link]\nrate = '1gbit'\n@", &["'100kB'", "'100000B'"]),
    key("loss", "[link]\n@", &["0.01", "'0.01'", "'1%'"]),
    key("duplicate", "[link]\n@", &["0.01", "'1%'"]),
    key("corrupt", "[link]\n@", &["0.01", "'1%'"]),
    key("reorder", "[link]\ndelay = '10ms'\n@", &["0.25", "'25%'"]),
    key("slot", "[link]\n@", &["'5ms 20ms packets 10'"]),
    key("discipline", "[link]\nrate = '1gbit'\n@", &["'codel'"]),
    key("changes", "[link]\nrate = '1gbit'\n@", &["'5s rate 1mbit'"]),
    key("to", "[[link.rules]]\n@", &["':443'"]),
    key("from", "[[link.rules]]\n@", &["':443'"]),
    key("protocol", "[[link.rules]]\n@", &["'tcp'"]),
    key("mtu", "[link]\n@", &["9000", "'9000'", "'9kB'"]),
    key("seed", "[link]\n@", &["7", "'7'"]),
    key("engine", "[link]\n@", &["'netem'"]),
    key("server", "[transfer]\nsize = '1MB'\n@", &["'nginx'"]),
    key("client", "[transfer]\n@", &["'curl'"]),
    key("port", "[transfer]\n@", &["8080", "'8080'"]),
    key("size", "[transfer]\n@", &["100000", "'100000'", "'100kB'"]),
    key("duration", "[transfer]\n@", &["1", "1.0", "'1'", "'1s'", "'1000ms'"]),
    key("read_rate", "[transfer]\n@", &["'8mbit'", "'1MB/s'"]),
    key("write_rate", "[transfer]\n@", &["'8mbit'", "'1MB/s'"]),
    key("requests", "[transfer]\nclient = 'curl'\nsize = '1MB'\n@", &["20", "'20'"]),
    key("connections", "[transfer]\nclient = 'curl'\nsize = '1MB'\n@", &["4", "'4'"]),
    key("limit_rate", "[transfer]\nclient = 'get'\n@", &["'1.6mbit'", "'200kB/s'"]),
    key("carriers", "[transfer]\nclient = 'relay'\nsize = '1MB'\n@", &["4", "'4'"]),
    key("warm", "[transfer]\nclient = 'relay'\nsize = '1MB'\n@", &["true"]),
    key("ask_after", "[transfer]\nrequests = 3\nsize = '1MB'\n@", &["'200ms'", "'0.2s'"]),
    key("answer_after", "[transfer]\n@", &["'200ms'", "'0.2s'"]),
    key("keepalive", "[transfer]\nclient = 'curl'\n@", &["2", "'2'", "'2s'"]),
    key("upload", "[transfer]\n@", &["true"]),
    key("application_window", "[transfer]\nupload = true\n@", &["2097152", "'2097152'", "'2MiB'"]),
    key(
        "application_window_step",
        "[transfer]\nupload = true\napplication_window = '2MiB'\n@",
        &["32768", "'32768'", "'32KiB'"],
    ),
    key(
        "write_rate_after",
        "[transfer]\nwrite_rate = '8mbit'\n@",
        &["2000000", "'2000000'", "'2MB'"],
    ),
    key("read_block", "[transfer]\nread_rate = '8mbit'\n@", &["65536", "'65536'", "'64KiB'"]),
    key("read_pause", "[transfer]\nread_pause_every = '1s'\n@", &["'150ms'", "'0.15s'"]),
    key("read_pause_every", "[transfer]\nread_pause = '150ms'\n@", &["'1s'", "'1000ms'"]),
    key(
        "readers",
        "[transfer]\n@",
        &[
            "[{ connections = 9, read_rate = '8mbit' }]",
            "[{ connections = '9', read_rate = '1MB/s' }]",
        ],
    ),
    key("write_block", "[transfer]\nwrite_rate = '8mbit'\n@", &["65536", "'65536'", "'64KiB'"]),
    key("receive_buffer", "[transfer]\n@", &["65536", "'65536'", "'64KiB'"]),
    key("send_buffer", "[transfer]\n@", &["65536", "'65536'", "'64KiB'"]),
    key("snaplen", "[capture]\n@", &["2000", "'2000'", "'2kB'"]),
    key("interval", "[sample]\n@", &["'20ms'", "'0.02s'"]),
    key("goodput", "[reference]\n@", &["'8mbit'", "'1MB/s'"]),
    key("frames", "[reference]\n@", &["'8mbit'", "'1MB/s'"]),
    key("note", "[reference]\n@", &["'x'"]),
    key("cause", "[reference]\n@", &["'x'"]),
];

/// Keys that are lists of others: they have no value of their own to write in two ways.
const OTHERS: &[&str] = &["include"];

fn rows(text: &str) -> Result<Vec<Scenario>, String> {
    let file = File::parse(text).map_err(|error| error.to_string())?;
    file.scenarios("test").map_err(|error| error.to_string())
}

fn with(key: &Key, value: &str) -> String {
    key.around.replace('@', &format!("{} = {value}", key.name))
}

#[test]
fn a_bare_number_and_its_texts_mean_the_same() {
    for key in KEYS {
        let first =
            rows(&with(key, key.ways[0])).unwrap_or_else(|error| panic!("{}: {error}", key.name));
        for way in &key.ways[1..] {
            assert_eq!(rows(&with(key, way)).as_ref(), Ok(&first), "{} = {way}", key.name);
        }
        let without = rows(&key.around.replace('@', "")).ok();
        assert_ne!(without.as_ref(), Some(&first), "{}: it changes nothing", key.name);
    }
}

#[test]
fn a_number_that_may_mean_two_things_is_refused_with_what_to_write() {
    for (name, value, says) in [
        ("link.rtt", "50", "no unit"),
        ("link.delay", "25", "no unit"),
        ("link.rate", "100", "no unit"),
        ("link.to_client.rate", "100", "no unit"),
        ("sample.interval", "10", "no unit"),
        ("transfer.read_rate", "1000", "no unit"),
        ("link.seed", "1.5", "no whole number"),
        ("repeat", "'ten'", "no whole number"),
        ("hosts.server.initcwnd", "'many'", "no whole number"),
        ("kernel", "6.10", "in quotes"),
        ("hosts.server.sysctl.net.ipv4.tcp_wmem", "'4096 16384 4194304'", "only in quotes"),
        ("hosts.server.sysctl.'net.ipv4.tcp_wmem'", "1.5", "a whole number or a text"),
    ] {
        let problem = rows(&format!("{name} = {value}")).expect_err(name);
        assert!(problem.contains(says), "{name} = {value}: {problem}");
        let problem = rows(&format!("[matrix]\n\"{name}\" = [{value}]")).expect_err(name);
        assert!(problem.contains(says), "matrix {name} = {value}: {problem}");
    }
}

/// The keys of the guide's table, without those in brackets.
fn keys_of_the_guide() -> Vec<String> {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/lab.md");
    let text = std::fs::read_to_string(page).unwrap();
    let section =
        text.split("## Every key of a scenario").nth(1).unwrap().split("\n## ").next().unwrap();
    let cells = section
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| line.split('|').nth(1).unwrap());
    let named = cells.flat_map(|cell| cell.split('`').skip(1).step_by(2));
    let keys: Vec<String> =
        named.filter(|name| !name.starts_with('[')).map(str::to_string).collect();
    assert!(keys.len() > 30, "the table was not found: {keys:?}");
    keys
}

#[test]
fn every_key_of_the_guide_is_tried() {
    for name in keys_of_the_guide() {
        let is_tried = KEYS.iter().any(|key| key.name == name) || OTHERS.contains(&&name[..]);
        assert!(is_tried, "the guide names `{name}`, and no way to write it is tried");
    }
}

/// The message for an unknown key names all that there are.
#[test]
fn the_guide_names_every_key() {
    let named = keys_of_the_guide();
    for around in ["[transfer]", "[link]", "[hosts.client]", "[capture]", "[sample]"] {
        let problem = rows(&format!("{around}\nnonsense = 1")).expect_err(around);
        let (_, known) = problem.split_once("expected ").expect(&problem);
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        let unnamed = known
            .iter()
            .filter(|key| !around.contains(*key) && !named.iter().any(|it| it == **key));
        // Parts of a key's own table stand in brackets in the guide.
        let unnamed: Vec<_> =
            unnamed.filter(|key| !["to_client", "to_server", "rules"].contains(*key)).collect();
        assert!(unnamed.is_empty(), "{around}: the guide does not name {unnamed:?}");
    }
}
