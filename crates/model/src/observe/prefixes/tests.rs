use super::*;
use proptest::prelude::*;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

fn site<'p>(prefixes: &'p Prefixes, address: &str) -> Option<&'p str> {
    Some(prefixes.site(address.parse().unwrap())?.site.as_str())
}

fn refused(text: &str) -> String {
    Prefixes::parse(text).map(|_| ()).unwrap_err().to_string()
}

#[test]
fn the_longest_prefix_wins_of_both_families() {
    let text = "\u{feff}# what we know\r\nprefix,site,provider,region\r\n10.0.0.0/8,office\r\n\
                10.1.0.0/16, fra1 ,\"Own, GmbH\",eu\r\n\n10.1.2.3,printer,,\r\n0.0.0.0/0,internet\r\n\
                2001:db8::/32,lab,,\n2001:db8:1::/48,lab-1,Own,eu\n::ffff:192.0.2.0/120,mapped\n";
    let prefixes = Prefixes::parse(text).unwrap();
    assert_eq!(prefixes.len(), 7);
    for (address, expected) in [
        ("10.9.9.9", Some("office")),
        ("10.1.9.9", Some("fra1")),
        ("10.1.2.3", Some("printer")),
        ("::ffff:10.1.2.3", Some("printer")),
        ("8.8.8.8", Some("internet")),
        ("192.0.2.7", Some("mapped")),
        ("2001:db8:2::1", Some("lab")),
        ("2001:db8:1::1", Some("lab-1")),
        ("2001:db9::1", None),
    ] {
        assert_eq!(site(&prefixes, address), expected, "{address}");
    }
    let fra = prefixes.site("10.1.0.1".parse().unwrap()).unwrap();
    assert_eq!(fra.provider.as_deref(), Some("Own, GmbH"));
    assert_eq!(fra.region.as_deref(), Some("eu"));
    assert_eq!(prefixes.site("10.1.2.3".parse().unwrap()).unwrap().provider, None);
}

#[test]
fn a_first_line_names_the_columns_in_any_order() {
    let prefixes = Prefixes::parse("Site,region,Prefix\nfra1,eu,10.0.0.0/8\n").unwrap();
    let found = prefixes.site("10.0.0.1".parse().unwrap()).unwrap();
    assert_eq!((found.site.as_str(), found.region.as_deref()), ("fra1", Some("eu")));
    let without = Prefixes::parse("10.0.0.0/8,fra1").unwrap();
    assert_eq!(site(&without, "10.0.0.1"), Some("fra1"));
}

#[test]
fn what_is_wrong_is_told_with_its_line_and_column() {
    for (text, expected) in [
        ("", "it has no prefix"),
        ("# nothing\n", "it has no prefix"),
        ("10.0.0.0/8,a\n\n10.0.0.0/33,b\n", "line 3, column 1: '10.0.0.0/33' is no prefix"),
        ("# ours\r\n\r\n10.0.0.0/8,a\r\n# theirs\r\nx,b", "line 5, column 1: 'x' is no prefix"),
        ("site,prefix\na,host.example\n", "line 2, column 2: 'host.example' is no prefix"),
        (
            "10.0.0.1/8,a\n",
            "line 1, column 1: 10.0.0.1/8 has bits behind its length; write 10.0.0.0/8",
        ),
        ("10.0.0.0/8,a\n10.0.0.0/8,a\n", "line 2, column 1: 10.0.0.0/8 stands in line 1, too"),
        ("10.0.0.0/8,a\n::ffff:10.0.0.0/104,b\n", "line 2, column 1: 10.0.0.0/8 stands in line 1"),
        ("10.0.0.0/8,a\r10.0.0.0/8,a\r", "line 2, column 1: 10.0.0.0/8 stands in line 1, too"),
        ("10.0.0.0/8,a\r\n\r11.0.0.0/8,a\r\nx,b", "line 4, column 1: 'x' is no prefix"),
        ("10.0.0.0/8\n", "line 1: it has 1 columns"),
        ("10.0.0.0/8,a,b,c,d\n", "line 1: it has 5 columns"),
        ("10.0.0.0/8,,b\n", "line 1, column 2: the name is empty"),
        ("10.0.0.0/8,a,b\u{7}\n", "line 1, column 3: the name is empty, longer"),
        ("prefix,site,site\n", "line 1, column 3: 'site' is no name of a column"),
        ("prefix,sites\n", "line 1, column 2: 'sites' is no name of a column"),
        ("prefix,provider\n", "line 1, column 2: 'provider' is no name"),
    ] {
        let told = refused(text);
        assert!(told.starts_with(expected), "{text:?}: {told}");
    }
    assert!(refused(&format!("10.0.0.0/8,{}", "x".repeat(NAME_MOST + 1))).contains("column 2"));
}

/// What the table is held to: every prefix is looked at, by the definition of a prefix.
fn by_hand(prefixes: &[(IpNet, String)], address: IpAddr) -> Option<&str> {
    let within = prefixes.iter().filter(|(net, _)| net.contains(&address));
    within.max_by_key(|(net, _)| net.prefix_len()).map(|(_, site)| site.as_str())
}

/// Prefixes that are often within each other.
fn net() -> impl Strategy<Value = IpNet> {
    let v4 = (0_u32..8, any::<u32>(), 0_u8..=32).prop_map(|(high, low, length)| {
        IpNet::V4(Ipv4Net::new(Ipv4Addr::from(high << 29 | low >> 20), length).unwrap().trunc())
    });
    let v6 = (0_u128..8, any::<u32>(), 0_u8..=128).prop_map(|(high, low, length)| {
        let address = Ipv6Addr::from(high << 125 | u128::from(low >> 20));
        IpNet::V6(Ipv6Net::new(address, length).unwrap().trunc())
    });
    prop_oneof![v4, v6]
}

proptest! {
    #[test]
    fn a_look_up_is_the_longest_prefix_by_its_definition(
        nets in proptest::collection::btree_set(net(), 1..40),
        asked in proptest::collection::vec(net(), 1..20),
    ) {
        let named: Vec<(IpNet, String)> =
            nets.into_iter().enumerate().map(|(at, net)| (net, format!("site-{at}"))).collect();
        let text = named.iter().fold(String::new(), |mut text, (net, site)| {
            writeln!(text, "{net},{site}").unwrap();
            text
        });
        let prefixes = Prefixes::parse(&text).unwrap();
        prop_assert_eq!(prefixes.len(), named.len());
        for address in asked.iter().map(IpNet::addr).chain(named.iter().map(|(net, _)| net.addr())) {
            // A mapped address is one of IPv4, which the definition does not know.
            if address.to_canonical() == address {
                let found = prefixes.site(address).map(|site| site.site.as_str());
                prop_assert_eq!(found, by_hand(&named, address), "{}", address);
            }
        }
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-0-9a-f:./,\"\n# ]{0,80}|\\PC{0,60}") {
        if let Ok(prefixes) = Prefixes::parse(&text) {
            prop_assert!(!prefixes.is_empty());
        }
    }
}
