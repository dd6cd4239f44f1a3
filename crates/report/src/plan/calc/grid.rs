//! Throughput over lists of round trips and losses, and what a host fills at many of them.

use super::heading;
use crate::table::{Column, Table};
use crate::{Layout, table::figure};
use fullpipe_flow::Language;
use fullpipe_model::limit::Limit;
use fullpipe_model::tune::{EndSheet, Grid, GridRow, HostSheet, Path};
use fullpipe_model::units::Rate;

/// The rows of a grid as lines, each with its line break.
pub fn render_grid(grid: &Grid, layout: Layout) -> String {
    let title = match layout.language {
        Language::English => format!("{}, one connection", grid.rate),
        Language::Chinese => format!("{}，一个连接", grid.rate),
    };
    let mut text = heading(&title, layout);
    let is_lossy = grid.rows.iter().any(|row| row.loss.is_some());
    text += &if is_lossy { with_loss(grid, layout) } else { without_loss(grid, layout) };
    text
}

/// The column of a file's time; empty if there is no file.
fn file_column(grid: &Grid, language: Language) -> Column {
    match (grid.rows.iter().find_map(|row| row.file), language) {
        (Some(file), Language::English) => Column::figure(format!("{} takes", file.amount), "s"),
        (Some(file), Language::Chinese) => Column::figure(format!("{} 需要", file.amount), "s"),
        (None, _) => Column::text(""),
    }
}

fn file_cell(row: &GridRow) -> String {
    row.file.map_or_else(String::new, |file| figure::s(file.total))
}

fn with_loss(grid: &Grid, layout: Layout) -> String {
    let mut table = Table::new([
        Column::figure("RTT", "ms"),
        Column::figure("loss", "%"),
        Column::figure("BDP", "MB").leaves(1),
        Column::figure("slow start", "s").leaves(2),
        Column::figure("path", "Mbit/s"),
        Column::figure("cubic", "Mbit/s"),
        Column::figure("reno", "Mbit/s"),
        Column::figure("with timeouts", "Mbit/s"),
        file_column(grid, layout.language),
    ]);
    for row in &grid.rows {
        let Some(loss) = &row.loss else { continue };
        table.row([
            figure::ms(row.rtt),
            loss.loss.to_string().trim_end_matches('%').into(),
            figure::megabytes(row.bdp),
            figure::s(row.slow_start),
            figure::mbit_per_s(row.goodput),
            figure::mbit_per_s(loss.cubic.goodput),
            figure::mbit_per_s(loss.reno.goodput),
            figure::mbit_per_s(loss.reno_with_timeouts.goodput),
            file_cell(row),
        ]);
    }
    table.render(layout)
}

fn without_loss(grid: &Grid, layout: Layout) -> String {
    let mut table = Table::new([
        Column::figure("RTT", "ms"),
        Column::figure("BDP", "MB").leaves(1),
        Column::figure("slow start", "s").leaves(2),
        Column::figure("path", "Mbit/s"),
        file_column(grid, layout.language),
    ]);
    for row in &grid.rows {
        table.row([
            figure::ms(row.rtt),
            figure::megabytes(row.bdp),
            figure::s(row.slow_start),
            figure::mbit_per_s(row.goodput),
            file_cell(row),
        ]);
    }
    table.render(layout)
}

/// What a host fills at many rates and round trips: four rates side by side, or each by itself.
pub fn render_fills(fills: &[HostSheet], layout: Layout) -> String {
    let mut rates: Vec<Rate> = fills.iter().map(|fill| fill.rate).collect();
    rates.sort_unstable();
    rates.dedup();
    if let Ok(rates) = <[Rate; 4]>::try_from(rates.as_slice()) {
        let receive = four_rates("receiving", fills, rates, |fill| fill.receive, layout);
        let send = four_rates("sending", fills, rates, |fill| fill.send, layout);
        return format!("{receive}\n{send}");
    }
    rates.iter().map(|&rate| one_rate(fills, rate, layout)).collect::<Vec<_>>().join("\n")
}

/// One direction: a row for each round trip.
fn four_rates(
    direction: &str,
    fills: &[HostSheet],
    rates: [Rate; 4],
    end: fn(&HostSheet) -> EndSheet,
    layout: Layout,
) -> String {
    let [a, b, c, d] = rates.map(|rate| Column::figure(rate.to_string(), "%"));
    let carried = Column::figure("at most", "Mbit/s");
    let mut table = Table::new([Column::figure("RTT", "ms"), a, b, c, d, carried]);
    for row in fills.iter().filter(|fill| fill.rate == rates[0]) {
        let [a, b, c, d] = rates.map(|rate| {
            let found = fills.iter().find(|fill| (fill.rate, fill.rtt) == (rate, row.rtt));
            found.map_or_else(String::new, |fill| filled(fill, end(fill), layout))
        });
        table.row([figure::ms(row.rtt), a, b, c, d, at_most(row, end(row))]);
    }
    let title = match layout.language {
        Language::English => format!("What one connection fills of a path, {direction}"),
        Language::Chinese => format!("一个连接能填满路径的多少，{}", layout.term(direction)),
    };
    heading(&title, layout) + &table.render(layout)
}

/// Both directions at one rate: a row for each round trip.
fn one_rate(fills: &[HostSheet], rate: Rate, layout: Layout) -> String {
    let mut table = Table::new([
        Column::figure("RTT", "ms"),
        Column::figure("receiving", "Mbit/s"),
        Column::figure("fills", "%"),
        Column::figure("sending", "Mbit/s"),
        Column::figure("fills", "%"),
    ]);
    for fill in fills.iter().filter(|fill| fill.rate == rate) {
        table.row([
            figure::ms(fill.rtt),
            figure::mbit_per_s(fill.receive.goodput),
            filled(fill, fill.receive, layout),
            figure::mbit_per_s(fill.send.goodput),
            filled(fill, fill.send, layout),
        ]);
    }
    let title = format!("What one connection fills of {rate}");
    heading(&title, layout) + &table.render(layout)
}

/// `full`, or the share of the goodput that the path could carry.
fn filled(fill: &HostSheet, end: EndSheet, layout: Layout) -> String {
    match end.limited_by {
        Limit::Link => layout.term("full").into(),
        _ => {
            let path = Path::new(fill.rate, fill.rtt);
            figure::percent(end.goodput.fraction_of(path.goodput()))
        }
    }
}

/// What the window carries at that round trip, however fast the path is.
fn at_most(fill: &HostSheet, end: EndSheet) -> String {
    end.window.per_rtt(fill.rtt).map_or_else(String::new, figure::mbit_per_s)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fullpipe_model::tune::{HostSettings, grid};

    #[test]
    fn a_row_for_each_round_trip_and_loss() {
        let rtts = ["1ms", "146ms"].map(|text| text.parse().unwrap());
        let losses = ["0.01%", "0.1%"].map(|text| text.parse().unwrap());
        let grid = grid("1gbit".parse().unwrap(), &rtts, &losses, Some("1GB".parse().unwrap()));
        let text = render_grid(&grid, Layout::default());
        let figures: Vec<Vec<f64>> = text
            .lines()
            .skip(4)
            .map(|line| line.split_whitespace().map(|cell| cell.parse().unwrap()).collect())
            .collect();
        assert_eq!(figures.len(), 4, "{text}");
        for row in &figures {
            let [rtt, loss, bdp, _, path, cubic, reno, timeouts, file] = row[..] else {
                panic!("{text}")
            };
            assert!((bdp - rtt * 0.125).abs() < 0.001, "1 Gbit/s is 125 kB a millisecond: {text}");
            // Mathis by hand, in Mbit/s, at most the path.
            let mathis = 1448.0 * 8.0 / (rtt * 1e3) * (1.5 / (loss / 100.0)).sqrt();
            assert!((reno - mathis.min(path)).abs() < 0.06, "{reno} {mathis}: {text}");
            assert!(timeouts <= reno && reno <= cubic && cubic <= path, "{text}");
            // Shown to a tenth of a Mbit/s and a hundredth of a second.
            assert!(file + 0.01 >= 8000.0 / (cubic + 0.05), "1 GB is 8000 Mbit: {text}");
        }
        let lossless = Grid { rows: vec![GridRow { loss: None, ..grid.rows[3].clone() }], ..grid };
        assert!(!render_grid(&lossless, Layout::default()).contains("cubic"));
    }

    #[test]
    fn what_a_host_fills_at_four_rates_and_at_one() {
        let host = HostSettings::defaults("6.1".parse().unwrap());
        let fills = |rates: &[&str]| {
            let mut fills = Vec::new();
            for rate in rates {
                for rtt in ["1ms", "50ms"] {
                    let path = Path::new(rate.parse().unwrap(), rtt.parse().unwrap());
                    fills.push(HostSheet::new(path, &host));
                }
            }
            render_fills(&fills, Layout::default())
        };
        let four = fills(&["100mbit", "1gbit", "10gbit", "100gbit"]);
        assert!(four.contains("receiving") && four.contains("sending"), "{four}");
        // Article B2: the default send buffer carries 440 of 965 Mbit/s at 50 ms, 100 Mbit/s fully.
        let line = four.lines().rev().find(|line| line.starts_with("50.00")).unwrap();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(&cells[..3], ["50.00", "full", "45.6"], "{four}");
        let one = fills(&["1gbit"]);
        assert!(one.starts_with("What one connection fills of 1 Gbit/s\n"), "{one}");
        assert!(one.contains("440.4   45.6"), "{one}");
    }
}
