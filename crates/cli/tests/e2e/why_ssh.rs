//! `fullpipe why` beside a real ssh over 167 ms: what holds it is SSH's own window, and the answer
//! says so with the process.

use crate::Case;
use crate::need::Need;
use crate::program::Program;
use serde_json::Value;

pub const CASES: &[Case] = &[(
    "ssh_over_167_ms_is_held_by_its_channel",
    &[Need::Root, Need::Program("sshd"), Need::Program("ssh"), Need::Program("ssh-keygen")],
    ssh_over_167_ms_is_held_by_its_channel,
)];

/// What OpenSSH grants a channel.
const CHANNEL: f64 = (2 << 20) as f64;

/// The upload, and looks at its sockets until its window has grown to the channel's, ten at most.
const CLIENT: &str = "ssh-keygen -q -t ed25519 -N '' -f user && cp user.pub authorized
head -c 300000000 /dev/zero | ssh -q -F none -i user -o BatchMode=yes -o StrictHostKeyChecking=no \
 -o UserKnownHostsFile=/dev/null -p 2222 root@$1 'cat > /dev/null' & upload=$!
for look in 1 2 3 4 5 6 7 8 9 10; do
  FULLPIPE why --for 2s --json > why.json
  grep -q ssh_channel_window why.json && break
done
FULLPIPE why --for 2s --json > why.json
kill $upload
";

fn ssh_over_167_ms_is_held_by_its_channel() {
    let program = Program::new();
    let work = program.work();
    let folder = work.to_str().unwrap();
    // What the service's start makes otherwise.
    std::fs::create_dir_all("/run/sshd").unwrap();
    let binary = program.binary().to_str().unwrap();
    std::fs::write(work.join("client.sh"), CLIENT.replace("FULLPIPE", binary)).unwrap();
    let made =
        program.command_by(&["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", "host"]).status();
    assert!(made.unwrap().success(), "a key of the host");
    let configuration = format!(
        "Port 2222\nHostKey {folder}/host\nAuthorizedKeysFile {folder}/authorized\n\
         StrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n"
    );
    std::fs::write(work.join("sshd.conf"), configuration).unwrap();
    let server = format!("$(command -v sshd) -D -e -f {folder}/sshd.conf");
    let path = ["link", "--rtt", "167ms", "--rate", "400mbit", "--server", &server];
    let linger = ["--linger", "1s", "--", "bash", "client.sh", "{server}"];
    let ended = program.run(&[&path[..], &linger].concat());
    let text = std::fs::read_to_string(work.join("why.json")).unwrap_or_default();
    let said: Value = serde_json::from_str(&text).unwrap_or_default();
    let connections = said["connections"].as_array().unwrap_or_else(|| panic!("{ended:?}"));
    let uploads = connections
        .iter()
        .filter(|one| one["process"]["name"].as_str().is_some_and(|name| name.starts_with("ssh")));
    let one = uploads
        .max_by_key(|one| one["goodput_bps"].as_u64())
        .unwrap_or_else(|| panic!("no connection of ssh: {text}"));
    assert_eq!(one["limit"], "application_window", "{one}");
    assert_eq!(one["acts"], if one["role"] == "sender" { "peer" } else { "here" }, "{one}");
    assert_eq!(one["remedy_name"], "leave_ssh_channel", "{one}");
    let cause = &one["causes"][0];
    assert_eq!(cause["sub_cause"], "ssh_channel_window", "{one}");
    let under_way = cause["amount_bytes"].as_f64().unwrap();
    assert!((0.8..=1.05).contains(&(under_way / CHANNEL)), "{cause}");
    // The law: a window a round trip, and no more.
    let allowed = CHANNEL * 8.0 / 0.167;
    let goodput = one["goodput_bps"].as_f64().unwrap();
    assert!(goodput < 1.05 * allowed && goodput > 0.7 * allowed, "{goodput} of {allowed}: {one}");
}
