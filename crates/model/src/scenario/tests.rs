//! Valid and invalid scenario files.

use super::*;
use crate::link::QueueLimit;
use proptest::prelude::*;

fn rows(text: &str) -> Result<Vec<Scenario>, ScenarioError> {
    File::parse(text)?.scenarios("test")
}

fn problem(text: &str) -> String {
    rows(text).unwrap_err().to_string()
}

#[test]
fn an_empty_file_is_an_unshaped_path_and_ten_seconds() {
    let [row] = &rows("").unwrap()[..] else { panic!("one row") };
    assert_eq!(
        (row.name.as_str(), row.path.rtt(), row.path.to_client.rate),
        ("test", Duration::ZERO, None)
    );
    assert_eq!(row.transfer.duration, Duration::from_secs(10));
    assert_eq!(row.sample_interval, Duration::from_millis(10));
}

#[test]
fn directions_take_the_common_values_and_override_them() {
    let text = r#"
        [link]
        rate = "1gbit"
        rtt = "50ms"
        [link.to_server]
        rate = "20mbit"
        loss = "1%"
        queue = "100packets"
    "#;
    let path = rows(text).unwrap().remove(0).path;
    assert_eq!(path.to_client.delay, Duration::from_millis(25).into());
    assert_eq!(path.to_client.rate, Some("1gbit".parse().unwrap()));
    assert!(path.to_client.loss.is_never());
    assert_eq!(path.to_server.rate, Some("20mbit".parse().unwrap()));
    assert_eq!(path.to_server.queue, QueueLimit::Packets(100));
    assert_eq!(path.rtt(), Duration::from_millis(50));
}

#[test]
fn iperf3_speaks_with_itself_for_whole_seconds() {
    let both = "[transfer]\nserver = \"iperf3\"\nclient = \"iperf3\"\n";
    let row = rows(&format!("{both}duration = \"3s\"")).unwrap().remove(0);
    assert_eq!((row.transfer.server, row.transfer.client), (Server::Iperf3, Client::Iperf3));
    for ends in ["duration = \"1500ms\"", "size = \"1MB\"", "size = \"1MB\"\nduration = \"3s\""] {
        let problem = problem(&format!("{both}{ends}"));
        assert!(problem.contains("whole seconds"), "{ends}: {problem}");
    }
    for one in
        ["server = \"iperf3\"", "client = \"iperf3\"", "server = \"nginx\"\nclient = \"iperf3\""]
    {
        let problem = problem(&format!("[transfer]\n{one}"));
        assert!(problem.contains("works only with itself"), "{one}: {problem}");
    }
}

#[test]
fn downloaders_keep_a_rate_and_the_built_in_client_reads_at_one() {
    for client in ["get", "curl", "wget", "pv"] {
        let text =
            format!("[transfer]\nclient = \"{client}\"\nsize = \"1MB\"\nlimit_rate = \"200kB/s\"");
        let row = rows(&text).unwrap().remove(0);
        assert_eq!(row.transfer.limit_rate, Some("200kB/s".parse().unwrap()), "{client}");
    }
    for (text, why) in [
        ("limit_rate = \"1MB/s\"", "read_rate"),
        ("carriers = 8", "\"relay\" only"),
        ("client = \"relay\"\ncarriers = 65", "1 to 64"),
        ("client = \"relay\"\nserver = \"nginx\"\nsize = \"1MB\"", "builtin"),
        ("client = \"get\"\nlimit_rate = \"1B/s\"", "at least 1 kB/s"),
        ("client = \"pv\"\nsize = \"1MB\"", "needs transfer.limit_rate"),
        ("client = \"wget\"\nduration = \"3s\"", "by transfer.size"),
    ] {
        let problem = problem(&format!("[transfer]\n{text}"));
        assert!(problem.contains(why), "{text}: {problem}");
    }
}

#[test]
fn cases_and_matrix_multiply() {
    let text = r#"
        name = "grid"
        [link]
        rate = "1gbit"
        [matrix]
        "link.rtt" = ["10ms", "20ms"]
        'hosts.client.sysctl."net.ipv4.tcp_rmem"' = ["4096 4096 4096", "4096 131072 6291456"]
        [[cases]]
        name = "clean"
        [[cases]]
        name = "lossy"
        link.loss = "1%"
        reference.goodput = "10MB/s"
    "#;
    let rows = rows(text).unwrap();
    assert_eq!(rows.len(), 8);
    assert!(
        rows.iter().any(|row| row.name == "grid/lossy/tcp_rmem=4096-4096-4096/rtt=20ms"),
        "{:?}",
        rows[0].name
    );
    let lossy = rows.iter().filter(|row| !row.path.to_client.loss.is_never()).count();
    assert_eq!(lossy, 4);
    for row in &rows {
        assert_eq!(row.path.to_client.rate, Some("1gbit".parse().unwrap()));
        assert_eq!(row.hosts.client.sysctl.len(), 1);
    }
}

#[test]
fn further_rows_stand_beside_the_files_own() {
    let text = r#"
        name = "b2"
        reference.goodput = "38.7MiB/s"
        [link]
        rtt = "50ms"
        [[also]]
        name = "linux-6.1"
        kernel = "6.1"
        reference.cause = "the kernel"
    "#;
    let rows = rows(text).unwrap();
    assert_eq!(
        rows.iter().map(|row| row.name.as_str()).collect::<Vec<_>>(),
        ["b2", "b2/linux-6.1"]
    );
    assert_eq!((rows[0].kernel.as_deref(), rows[1].kernel.as_deref()), (None, Some("6.1")));
    assert_eq!(rows[1].path, rows[0].path);
    assert_eq!(rows[1].reference.goodput, rows[0].reference.goodput);
    assert_eq!(rows[1].reference.cause.as_deref(), Some("the kernel"));
}

#[test]
fn mistakes_are_named_with_what_to_write() {
    for (text, says) in [
        ("[link]\nrate = \"1gb\"", "does not say bit or byte"),
        ("[link]\nspeed = \"1gbit\"", "unknown field `speed`"),
        ("[link]\nrate = \"1gbit\"\nrtt = \"-50ms\"", "no number"),
        ("[link]\nrtt = \"50\"", "no unit"),
        ("[link]\nrtt = \"50ms\"\ndelay = \"25ms\"", "not both"),
        ("[link]\nrate = \"0bit\"", "carries nothing"),
        ("[link]\nloss = \"150%\"", "between 0% and 100%"),
        ("[link]\nmtu = \"20\"", "between 576 B"),
        ("[transfer]\nduration = \"1us\"", "between 100 ms and 1 h"),
        ("[transfer]\nsize = \"0\"", "between 1 B"),
        ("[transfer]\nserver = \"apache\"", "unknown variant `apache`"),
        ("[transfer]\nclient = \"curl\"\nread_rate = \"1mbit\"", "builtin"),
        ("[transfer]\nserver = \"nginx\"", "size is needed"),
        ("[hosts.client]\nnice = 100", "between -20 and 19"),
        ("[hosts.client]\ncpu_hog_nice = -20", "needs `cpu`"),
        ("[hosts.client.sysctl]\n\"kernel.panic\" = 1", "only names below net."),
        ("[hosts.client.sysctl]\n\"net.ipv4.tcp_rmem\" = [1]", "a whole number or a text"),
        ("[hosts.server]\ncongestion_control = \"cubic; rm\"", "no name of one"),
        ("[matrix]\n\"link.rtt\" = []", "no values"),
        ("[matrix]\n\"link.rtt\" = [\"10\"]", "no unit"),
        ("[matrix]\n\"link.rrt\" = [\"10ms\"]", "unknown field `rrt`"),
        ("include = [\"b0\"]\n[link]\nrtt = \"1ms\"", "cannot be combined"),
        ("name = \"../../etc\"", "use letters"),
        ("repeat = 0", "between 1 and 1000"),
        ("link = 5", "invalid type"),
        ("[link", "line 1, column 6"),
        ("[link]\nrtt = \"50\"", "line 2, column 7: time '50': no unit"),
        ("[link]\nrtt = \"50\"", "in `link.rtt`"),
        ("[link]\nspeed = 1", "in `link`"),
        ("[[link.rules]]\nto = \":1\"\nrtt = \"7\"", "in `link.rules.rtt`"),
        ("[matrix]\n\"link.rtt\" = [\"10\"]", "in `link.rtt`"),
        ("link = 5", "in `link`"),
        ("nothing = 1", "`also`"),
    ] {
        let error = problem(text);
        assert!(error.contains(says), "{text}\n=> {error}");
    }
}

#[test]
fn a_ready_scenario_is_written_as_toml() {
    let text =
        toml::to_string(&rows("[link]\nrate = \"1gbit\"\nrtt = \"50ms\"").unwrap()[0]).unwrap();
    assert!(text.contains("rate = \"1gbit\"") && text.contains("delay = \"25ms\""), "{text}");
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*") {
        let _ = rows(&text);
    }

    #[test]
    fn almost_scenarios_are_read_or_refused(key in "(link|transfer|hosts|matrix|cases|repeat)(\\.[a-z_]{1,8}){0,2}", value in "(\"[0-9]{0,6}(gbit|ms|MB|%)?\"|-?[0-9]{1,20}|\\[\\]|\\[\\[\\]\\]|\\{\\})") {
        let _ = rows(&format!("{key} = {value}"));
    }
}

#[test]
fn a_first_window_has_at_least_a_segment() {
    let with = |word: &str| format!("[hosts.server]\n{word}\n[transfer]\nsize = \"1MB\"\n");
    assert_eq!(rows(&with("initcwnd = 40")).unwrap()[0].hosts.server.initcwnd, Some(40));
    for wrong in ["initcwnd = 0", "initrwnd = 70000"] {
        let error = problem(&with(wrong));
        assert!(error.contains("between 1 and 65535 segments"), "{error}");
    }
}
