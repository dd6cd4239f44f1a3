//! `fullpipe relay --mptcp`: one carrier between two hosts that two paths join.

use std::net::SocketAddr;

use fullpipe_kernel::network::netlink::{Netlink, VethEnd};
use fullpipe_kernel::network::netns::NetNs;

use crate::Case;
use crate::need::Need;
use crate::program::{Finished, Program, Running, until};
use crate::relay::{PATIENCE, content, said_address};

const NEEDS: &[Need] = &[
    Need::Root,
    Need::Mptcp,
    Need::Program("ip"),
    Need::Program("tc"),
    Need::Program("curl"),
    Need::Program("python3"),
];

pub const CASES: &[Case] = &[
    ("one_carrier_takes_two_paths", NEEDS, two_paths),
    ("a_kernel_that_has_it_switched_off_is_told", NEEDS, switched_off),
];

/// What is downloaded. Each path carries 10 Mbit/s, so one alone takes more than
/// [`ONE_PATH`].
const SIZE: usize = 4_000_000;
/// Seconds: [`SIZE`] at 10 Mbit/s, without what the first bucket gives away.
const ONE_PATH: f64 = 3.1;

/// Two hosts with two links between them.
struct World {
    near: NetNs,
    far: NetNs,
}

impl World {
    fn new(program: &Program) -> World {
        let world =
            World { near: NetNs::create("near").unwrap(), far: NetNs::create("far").unwrap() };
        let mut netlink = Netlink::open(&world.near).unwrap();
        for path in [1, 2] {
            let (near, far) = (format!("near{path}"), format!("far{path}"));
            let ends = [(near.as_str(), 1), (far.as_str(), 2)]
                .map(|(name, last)| VethEnd { name, mac: [2, 0, 0, 0, path, last] });
            let [near, far] = ends;
            netlink.add_veth(near, far, &world.far).unwrap();
        }
        for (ns, name, last) in [(&world.near, "near", 1), (&world.far, "far", 2)] {
            let path = |path: u8| {
                format!(
                    "ip address add 10.98.{path}.{last}/24 dev {name}{path}
                     ip link set {name}{path} up
                     tc qdisc add dev {name}{path} root tbf rate 10mbit burst 20kb latency 50ms\n"
                )
            };
            let script = format!(
                "set -e\nip link set lo up\n{}{}ip mptcp limits set subflow 2 add_addr_accepted 2",
                path(1),
                path(2)
            );
            world.run(program, ns, &["sh", "-c", &script]);
        }
        let second = ["ip", "mptcp", "endpoint", "add", "10.98.2.1", "dev", "near2", "subflow"];
        world.run(program, &world.near, &second);
        world
    }

    fn start(&self, program: &Program, ns: &NetNs, words: &[&str]) -> Running {
        let mut command = program.command_by(words);
        ns.start_in(&mut command).unwrap();
        program.start(&mut command)
    }

    fn run(&self, program: &Program, ns: &NetNs, words: &[&str]) -> Finished {
        let finished = self.start(program, ns, words).end();
        assert_eq!(finished.code, Some(0), "{finished:?}");
        finished
    }

    /// What the far host has sent on a path, in bytes.
    fn sent(&self, program: &Program, path: u8) -> u64 {
        let file = format!("/sys/class/net/far{path}/statistics/tx_bytes");
        // A mount of sysfs shows the namespace in which it was made.
        let script = format!("mount -t sysfs none /sys && cat {file}");
        let words = ["unshare", "--mount", "--propagation", "private", "sh", "-c", &script];
        self.run(program, &self.far, &words).out.trim().parse().unwrap()
    }
}

/// A pair of keys: the file with the private one, and the public one.
fn key(program: &Program, name: &str) -> String {
    let made = program.run(&["keygen", name]);
    assert_eq!(made.code, Some(0), "{made:?}");
    let said = made.out.split_whitespace().find(|word| word.starts_with("ed25519:"));
    said.unwrap_or_else(|| panic!("no public key: {made:?}")).to_owned()
}

/// Downloads by one carrier, and gives the seconds that it took.
fn download(program: &Program, world: &World, options: &[&str]) -> f64 {
    let (near_key, far_key) = ("near.key", "far.key");
    let binary = program.binary().to_str().unwrap();
    let origin = ["python3", "-m", "http.server", "8000", "--bind", "127.0.0.1"];
    let _origin = world.start(program, &world.far, &origin);
    let ask = |address: &str| {
        let url = format!("http://{address}/large.bin");
        ["curl", "-sS", "--max-time", "60", "-o", "got.bin", "-w", "%{time_total}", &url]
            .map(str::to_owned)
    };
    let probe = ["curl", "-s", "-o", "/dev/null", "http://127.0.0.1:8000/far.key.pub"];
    until("the origin listens", PATIENCE, || {
        world.start(program, &world.far, &probe).end().code == Some(0)
    });
    let serve = [binary, "serve", "--listen", "10.98.1.2:0", "--key", far_key];
    let serve = [&serve[..], &["--allow-key", "near.key.pub", "--relay"], options].concat();
    let serve = [&serve[..], &["--allow", "127.0.0.1:8000"]].concat();
    let far = world.start(program, &world.far, &serve);
    let server: SocketAddr = said_address(&far, "serving tests on ");
    let server = server.to_string();
    let public = std::fs::read_to_string(program.work().join("far.key.pub")).unwrap();
    let relay =
        [binary, "relay", "--server", &server, "--listen", "127.0.0.1:0", "--key", near_key];
    let relay = [&relay[..], &["--server-key", public.trim(), "--carriers", "1"], options].concat();
    let relay = [&relay[..], &["--to", "127.0.0.1:8000"]].concat();
    let near = world.start(program, &world.near, &relay);
    let address = said_address(&near, "listening on ");
    let words = ask(&address.to_string());
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let got = world.run(program, &world.near, &words);
    let sent = std::fs::read(program.work().join("large.bin")).unwrap();
    assert!(std::fs::read(program.work().join("got.bin")).unwrap() == sent, "other bytes");
    got.out.trim().parse().unwrap()
}

fn prepared(program: &Program) {
    program.file("large.bin", content(SIZE));
    for name in ["near.key", "far.key"] {
        let public = key(program, name);
        program.file(&format!("{name}.pub"), format!("{public}\n"));
    }
}

fn two_paths() {
    let program = Program::new();
    prepared(&program);
    let world = World::new(&program);
    let alone = download(&program, &world, &[]);
    assert!(alone > ONE_PATH, "{alone} s over one path of 10 Mbit/s");
    let before = world.sent(&program, 2);
    let together = download(&program, &world, &["--mptcp"]);
    let second = world.sent(&program, 2) - before;
    // Two paths of 10 Mbit/s: the second carries up to half. How soon the kernel joins it, and how
    // it shares, is the kernel's matter.
    assert!(
        second > SIZE as u64 / 50,
        "{second} bytes by the second path; {alone} s, {together} s"
    );
}

fn switched_off() {
    let program = Program::new();
    let world = World::new(&program);
    let script = "echo 0 > /proc/sys/net/mptcp/enabled";
    world.run(&program, &world.near, &["sh", "-c", script]);
    let binary = program.binary().to_str().unwrap();
    for words in [
        &["relay", "--server", "127.0.0.1", "--listen", "127.0.0.1:0", "--to", "x:1"][..],
        &["serve", "--listen", "127.0.0.1:0", "--relay", "--allow", "x:1"],
    ] {
        let words = [&[binary], words, &["--mptcp"]].concat();
        let refused = world.start(&program, &world.near, &words).end();
        assert_eq!(refused.code, Some(3), "{refused:?}");
        assert!(refused.err.contains("net.mptcp.enabled"), "{refused:?}");
    }
}
