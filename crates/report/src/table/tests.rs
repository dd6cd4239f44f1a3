//! What every table holds, and that each fits a terminal.

use super::*;
use crate::table::figure;
use fullpipe_model::law::window::{Windows, rate};
use fullpipe_model::units::{Bytes, Duration, Rate, Window};
use proptest::prelude::*;

/// Article A1 by its law: a window of 1040 bytes at five RTTs.
fn article_a1() -> Table<3> {
    let mut table = Table::new([
        Column::text("step"),
        Column::figure("RTT", "ms"),
        Column::figure("goodput", "Mbit/s"),
    ]);
    for rtt in [10, 20, 40, 80, 100].map(Duration::from_millis) {
        let windows = Windows { receive: Window::new(Bytes::new(1040)), ..Windows::UNLIMITED };
        let (goodput, _) = rate(windows, rtt, "1gbit".parse().unwrap());
        table.row([format!("a1 {rtt}"), figure::ms(rtt), figure::mbit_per_s(goodput)]);
    }
    table
}

const DRAWN: &str = "\
step          RTT  goodput
               ms   Mbit/s
--------------------------
a1 10 ms    10.00      0.8
a1 20 ms    20.00      0.4
a1 40 ms    40.00      0.2
a1 80 ms    80.00      0.1
a1 100 ms  100.00      0.1
";

#[test]
fn a_cell_cannot_steer_the_terminal() {
    let mut table = Table::new([Column::text("run"), Column::count("n")]);
    table.row(["a\u{1b}[2J\nb".into(), "1".into()]);
    let text = table.render(Layout::default());
    assert!(text.contains("a\\u{1b}[2J\\nb") && text.lines().count() == 3, "{text:?}");
}

#[test]
fn columns_line_up_and_the_figures_obey_the_law() {
    let ascii = Layout { charset: Charset::Ascii, ..Layout::default() };
    assert_eq!(article_a1().render(ascii), DRAWN);
    // Read back from the drawing: goodput x RTT is the window, within the decimals shown.
    for row in DRAWN.lines().skip(3) {
        let figures: Vec<&str> = row.split_whitespace().collect();
        let rtt: Duration = format!("{} ms", figures[3]).parse().unwrap();
        let goodput: Rate = format!("{} Mbit/s", figures[4]).parse().unwrap();
        let (shown, window) = (goodput.over(rtt).as_f64(), 1040.0);
        let half_a_decimal = Rate::from_bits_per_sec(50_000).over(rtt).as_f64() + 1.0;
        assert!((shown - window).abs() <= half_a_decimal, "{row}: {shown}");
    }
}

#[test]
fn utf8_differs_from_ascii_in_lines_alone() {
    assert_eq!(article_a1().render(Layout::default()), DRAWN.replace('-', "─"));
}

#[test]
fn colour_differs_from_plain_in_escapes_alone() {
    let coloured =
        article_a1().render(Layout { colour: true, charset: Charset::Ascii, ..Layout::default() });
    assert!(coloured.starts_with("\x1b[1mstep"));
    assert_eq!(coloured.replace("\x1b[1m", "").replace("\x1b[0m", ""), DRAWN);
}

#[test]
fn a_narrow_terminal_breaks_texts() {
    let mut table = Table::new([Column::text("what"), Column::text("why"), Column::count("n")]);
    table.row([
        "window".into(),
        "the receive buffer advertises half of itself".into(),
        "12".into(),
    ]);
    let narrow =
        table.render(Layout { width: Some(32), charset: Charset::Ascii, ..Layout::default() });
    assert_eq!(
        narrow,
        "\
what    why                  n
------------------------------
window  the receive buffer  12
        advertises half of
        itself
"
    );
}

#[test]
fn without_headings_rows_stand_alone() {
    let mut table = Table::new([Column::text(""), Column::count("")]);
    table.row(["packets".into(), "12".into()]).row(["bytes".into(), "17376".into()]);
    let coloured = Layout { colour: true, ..Layout::default() };
    assert_eq!(table.render(coloured), "packets     12\nbytes    17376\n");
}

#[test]
fn no_rows_are_a_heading() {
    let table = Table::new([Column::text("name"), Column::count("packets")]);
    assert!(table.is_empty());
    assert_eq!(
        table.render(Layout { charset: Charset::Ascii, ..Layout::default() }),
        "name  packets\n-------------\n"
    );
}

/// A table of what a host may show, with long addresses and a long reason.
fn connections() -> Table<5> {
    let mut table = Table::new([
        Column::text("this end").leaves(2),
        Column::text("peer"),
        Column::figure("goodput", "Mbit/s"),
        Column::count("dup ACK").leaves(1),
        Column::text("limited by"),
    ]);
    let address = "192.168.100.200:54321";
    table.row([address, address, "965.3", "12", "congestion window 97 %"].map(Into::into));
    table
}

fn narrow(width: u16) -> Layout {
    Layout { width: Some(width), charset: Charset::Ascii, ..Layout::default() }
}

#[test]
fn columns_leave_in_their_order_and_a_line_names_them() {
    let whole = connections().render(Layout::default());
    assert_eq!(connections().render(narrow(100)), whole.replace('─', "-"));
    assert_eq!(
        connections().render(narrow(80)),
        "\
this end               peer                   goodput  limited by
                                               Mbit/s
-----------------------------------------------------------------------------
192.168.100.200:54321  192.168.100.200:54321    965.3  congestion window 97 %
not shown: dup ACK; a wider terminal, `| less -S` or --json shows them
"
    );
    let text = connections().render(narrow(60));
    assert!(text.contains("not shown: this end, dup ACK;") && !text.contains("12"), "{text}");
    assert!(text.contains("  965.3  congestion window 97 %\n"), "{text}");
}

#[test]
fn where_words_do_not_fit_beside_each_other_rows_are_listed() {
    let address = "[2001:db8:1111:2222:3333:4444:5555:6666]:54321";
    let mut table = Table::new([
        Column::text("this end"),
        Column::figure("goodput", "Mbit/s").leaves(1),
        Column::text("peer"),
        Column::text("limited by"),
    ]);
    for limit in ["receiver application 100 %", "link 95 %"] {
        table.row([address, "1.0", address, limit].map(Into::into));
    }
    assert_eq!(
        table.render(narrow(60)),
        format!(
            "\
this end    {address}
peer        {address}
limited by  receiver application 100 %

this end    {address}
peer        {address}
limited by  link 95 %
not shown: goodput (Mbit/s); a wider terminal, `| less -S`
           or --json shows them
"
        )
    );
    // A word that is longer than a line is cut with a mark, so that nothing breaks.
    let mut paths = Table::new([Column::text("kernel"), Column::text("path")]);
    paths.row(["6.12".into(), format!("/root/.cache/{}/vmlinux", "x".repeat(80))]);
    let text = paths.render(narrow(60));
    assert!(text.lines().all(|line| line.len() <= 60), "{text}");
    assert!(text.contains("path    /root/") && text.contains("~") && text.contains("vmlinux\n"));
}

proptest! {
    #[test]
    fn no_line_is_too_long_and_no_word_is_broken(
        cells in proptest::collection::vec(
            proptest::array::uniform5("[a-z:]{1,40}( [a-z]{1,12}){0,5}"), 0..5),
        headings in proptest::array::uniform5("[A-Z]{1,12}( [A-Z]{1,9}){0,2}"),
        leaves in proptest::array::uniform5(proptest::option::of(0_u8..4)),
        width in 60_u16..200,
    ) {
        let columns: [Column; 5] = std::array::from_fn(|at| {
            let column = Column::figure(headings[at].clone(), ["", "ms"][at % 2]);
            leaves[at].map_or(column.clone(), |order| column.leaves(order))
        });
        let mut table = Table::new(columns);
        for row in &cells {
            table.row(row.clone());
        }
        let text = table.render(narrow(width));
        for line in text.lines() {
            prop_assert!(line.chars().count() <= usize::from(width), "{width}: {line}\n{text}");
        }
        let left = text.split("not shown").nth(1).unwrap_or_default();
        let left = left.split_whitespace().collect::<Vec<_>>().join(" ");
        let words: Vec<&str> = text.split_whitespace().collect();
        for at in 0..5 {
            if leaves[at].is_some() && left.contains(&headings[at]) {
                continue;
            }
            for word in cells.iter().flat_map(|row| row[at].split(' ')) {
                // One that fills a line by itself is cut with a mark where rows are listed.
                let is_whole = words.contains(&word) || text.contains('~') && word.len() > 18;
                prop_assert!(is_whole, "{width}: {word}\n{text}");
            }
        }
        // What is no terminal has everything in one piece.
        let whole = table.render(Layout::default());
        prop_assert!(!whole.contains("not shown"));
        prop_assert!(cells.iter().flatten().all(|cell| whole.contains(cell.as_str())), "{whole}");
    }
}
