//! The picture: the screen drawn into a buffer of cells.
//!
//! Pure: the size of the terminal, its colours and its characters are arguments. A connection takes
//! two lines of the list, and a third where both addresses do not fit into one. From 80 columns on
//! no address is cut.

use super::screen::Screen;
use super::view::Page;
use super::words::{self, cells};
use super::{details, help, list};
use fullpipe_report::table::escape;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_core::style::Style;
use ratatui_core::text::Line;

/// Lines that the heading and the foot of the screen take.
pub const FRAME_LINES: usize = 3;

/// Draws the screen over the whole buffer.
pub fn draw(buffer: &mut Buffer, screen: &Screen) {
    let area = buffer.area;
    let height = usize::from(area.height);
    let room = height.saturating_sub(FRAME_LINES);
    let (title, lines) = match screen.view.page {
        Page::List => (list::title(screen, area.width), list::lines(screen, area.width, room)),
        Page::Details => details::page(screen, area.width, room),
        Page::Help => {
            (Line::raw(words::of(screen.language).help_title), help::lines(screen.language))
        }
    };
    let heading = match screen.view.page {
        Page::List => list::heading(screen.language, area.width),
        Page::Details | Page::Help => "".into(),
    };
    put(buffer, 0, title.style(Style::new().bold()));
    put(buffer, 1, heading.style(Style::new().underlined()));
    for (index, line) in lines.into_iter().take(room).enumerate() {
        put(buffer, index + 2, line);
    }
    if height >= FRAME_LINES && screen.has_keys {
        put(buffer, height - 1, foot(screen, area.width).style(Style::new().dim()));
    }
}

fn put(buffer: &mut Buffer, y: usize, line: Line) {
    let Rect { width, height, .. } = buffer.area;
    if let Ok(row) = u16::try_from(y)
        && row < height
    {
        buffer.set_line(0, row, &line, width);
    }
}

/// The filter while it is typed, or the keys: as many as there is room for, none of them cut.
fn foot<'a>(screen: &Screen, width: u16) -> Line<'a> {
    let view = screen.view;
    if let Some(text) = &view.typing {
        let text = escape::in_line(text).into_owned();
        return Line::raw(words::typing(screen.language, &text));
    }
    let words = words::of(screen.language);
    let keys: &[&str] = match view.page {
        Page::List => &words.list_keys,
        Page::Details => &words.details_keys,
        Page::Help => &words.help_keys,
    };
    let mut text = String::new();
    for key in keys {
        let gap = if text.is_empty() { 0 } else { 3 };
        if cells(&text) + gap + cells(key) > usize::from(width) {
            break;
        }
        text += &" ".repeat(gap);
        text += key;
    }
    Line::raw(text)
}

/// The buffer as lines without blanks at their ends, the last empty ones left out.
pub fn text(buffer: &Buffer) -> String {
    let Rect { width, height, .. } = buffer.area;
    let mut lines = Vec::new();
    for y in 0..height {
        let (mut line, mut x) = (String::new(), 0);
        while x < width {
            let symbol = buffer[(x, y)].symbol();
            line += symbol;
            // A character of two cells covers the next one.
            x += u16::try_from(cells(symbol)).unwrap_or(1).max(1);
        }
        lines.push(line.trim_end().to_string());
    }
    let used = lines.iter().rposition(|line| !line.is_empty()).map_or(0, |last| last + 1);
    lines[..used].iter().map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests {
    use super::super::examples::{longest, row, snapshot};
    use super::super::row::{Hidden, Row, Snapshot};
    use super::super::view::View;
    use super::*;
    use fullpipe_flow::Language;
    use fullpipe_flow::account::{AccountPart, Cause, Owner};
    use fullpipe_flow::connection::filter::LiveFilter;
    use fullpipe_model::limit::Limit;
    use fullpipe_model::observe::PeerSite;
    use fullpipe_model::units::{Duration, Instant};
    use fullpipe_report::Charset;
    use proptest::prelude::*;
    use ratatui_crossterm::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

    fn screen<'a>(view: &'a View, snapshot: &'a Snapshot) -> Screen<'a> {
        let (interval, charset) = (Duration::from_secs(1), Charset::Utf8);
        let language = Language::English;
        Screen { snapshot, view, interval, charset, language, has_colour: false, has_keys: true }
    }

    fn drawn(width: u16, height: u16, view: &View, snapshot: &Snapshot) -> String {
        let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
        draw(&mut buffer, &screen(view, snapshot));
        text(&buffer)
    }

    #[test]
    fn the_list_at_80_by_24() {
        let text = drawn(80, 24, &View::default(), &snapshot());
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 24, "{text}");
        assert!(lines[0].starts_with("fullpipe top  3 busy of 1034 connections"), "{text}");
        assert!(lines[2].starts_with(">  75 % BBBBBBBBBBBB==== send buffer"), "{text}");
        assert!(lines[2].contains("55.05 MB/s") && lines[2].contains('█'), "{text}");
        assert!(lines[3].contains("10.0.0.1:40000 → 10.0.0.2:443  curl 4711"), "{text}");
        // A slow reader lost all of its 10 s, but that is less than 75 s.
        assert!(lines[4].starts_with("  100 % RRRRRRRRRRRRRRRR receiver app"), "{text}");
    }

    #[test]
    fn no_address_is_cut_from_80_columns_on() {
        for (width, height) in [(80, 24), (120, 40), (200, 50)] {
            for page in [Page::List, Page::Details] {
                let snapshot = Snapshot { rows: vec![longest()], ..snapshot() };
                let view = View { page, selected: Some(longest().id), ..View::default() };
                let text = drawn(width, height, &view, &snapshot);
                for end in [longest().local, longest().remote] {
                    assert!(text.contains(&end.to_string()), "{width}x{height}: {end}\n{text}");
                }
                assert!(text.contains("fifteen-letters"), "{text}");
            }
        }
        // At 40 columns both ends of an address stay, and a mark says that it is cut.
        let text =
            drawn(40, 10, &View::default(), &Snapshot { rows: vec![longest()], ..snapshot() });
        assert!(text.contains("[2001:db8:") && text.contains("]:65535"), "{text}");
        assert!(text.contains('…'), "{text}");
    }

    #[test]
    fn a_time_that_is_past_and_a_peers_site_are_named() {
        let (from, span) =
            (Instant::from_nanos(1_795_998_000_000_000_000), Duration::from_secs(600));
        let site = PeerSite { site: "fra\u{9b}1".into(), provider: None, region: None };
        let rows = vec![Row { site: Some(site), ..row() }];
        let snapshot = Snapshot { rows, then: Some((from, span)), ..snapshot() };
        let text = drawn(80, 24, &View::default(), &snapshot);
        let title = text.lines().next().unwrap();
        assert!(title.contains(&format!("{span} from 2026-11-30T00:20:00Z")), "{text}");
        assert!(!title.contains("every"), "{text}");
        let line = text.lines().nth(3).unwrap();
        assert!(line.contains("10.0.0.2:443  fra") && line.ends_with("curl 4711"), "{text}");
        assert!(!text.contains('\u{9b}'), "{text}");
    }

    #[test]
    fn a_small_screen_shows_the_selection() {
        let mut snapshot = snapshot();
        snapshot.rows = (0..50).map(|index| Row { id: (1, index), ..row() }).collect();
        let view = View { selected: Some((1, 49)), ..View::default() };
        for (width, height) in [(80, 24), (40, 10), (20, 6)] {
            let text = drawn(width, height, &view, &snapshot);
            assert!(text.lines().any(|line| line.starts_with('>')), "{width}x{height}\n{text}");
        }
    }

    #[test]
    fn details_of_one_connection() {
        let view = View { page: Page::Details, selected: Some(row().id), ..View::default() };
        let text = drawn(80, 24, &view, &snapshot());
        for part in [
            "10.0.0.1:40000 → 10.0.0.2:443",
            "curl -T file https://10.0.0.2/",
            "55.05 MB/s now",
            "send buffer",
            "75.0 %",
            "round trip",
            "50.1 ms",
            "██",
        ] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        // The strip below the graph: three quarters of the moments are the send buffer's.
        assert!(text.lines().any(|line| line.contains("BBBBBBBB==========")), "{text}");
        let gone = View { page: Page::Details, selected: Some((9, 9)), ..View::default() };
        assert!(drawn(80, 24, &gone, &snapshot()).contains("closed or idle"));
    }

    #[test]
    fn what_a_connection_waits_for_is_named_where_no_limit_held_it() {
        let waits = vec![AccountPart {
            owner: Owner::ServerApplication,
            cause: Cause::ServerThinks,
            direction: None,
            time: Duration::from_secs(90),
            lost: Duration::from_secs(90),
        }];
        let waiting = Row { times: Vec::new(), waits, ..row() };
        let snapshot = Snapshot { rows: vec![waiting], ..snapshot() };
        let list = drawn(80, 24, &View::default(), &snapshot);
        assert!(list.contains("server thinks"), "{list}");
        let view = View { page: Page::Details, selected: Some(row().id), ..View::default() };
        let details = drawn(80, 24, &view, &snapshot);
        assert!(details.contains("server's program") && details.contains("90.0 %"), "{details}");
    }

    #[test]
    fn the_foot_has_whole_keys_at_every_width() {
        let foot = |width| {
            let text = drawn(width, 24, &View::default(), &snapshot());
            text.lines().last().unwrap().to_string()
        };
        let keys = words::of(Language::English).list_keys;
        let whole = keys.join("   ");
        assert_eq!(foot(80), whole);
        for width in [20, 40, 60, 79] {
            let shown = foot(width);
            assert!(whole.starts_with(&shown) && shown.contains("?: help"), "{width}: {shown}");
            assert!(keys.iter().any(|key| shown.ends_with(key)), "{width}: {shown}");
        }
    }

    #[test]
    fn help_names_every_letter_and_fits() {
        let text = drawn(80, 24, &View { page: Page::Help, ..View::default() }, &snapshot());
        for limit in Limit::ALL {
            assert!(text.contains(limit.words()), "{limit}:\n{text}");
        }
        assert!(text.contains("any key: back"), "{text}");
        for language in Language::ALL {
            let lines = help::lines(language);
            assert!(lines.iter().all(|line| line.width() <= 80), "none is cut: {lines:?}");
        }
        assert!(!text.contains(")L"), "{text}");
    }

    #[test]
    fn what_cannot_be_seen_is_said_above_the_list() {
        let hidden = Hidden { namespaces: 1, has_processes: true };
        let text = drawn(80, 24, &View::default(), &Snapshot { hidden, ..snapshot() });
        let line = text.lines().nth(2).unwrap();
        assert!(
            line.ends_with(
                "Only root sees one more network namespace and the processes of other users."
            ),
            "{text}"
        );
        assert!(text.lines().nth(3).unwrap().starts_with('>'), "{text}");
    }

    #[test]
    fn nothing_busy_and_nothing_that_fits_are_said() {
        let empty = Snapshot { connections: 7, ..Snapshot::default() };
        assert!(drawn(80, 24, &View::default(), &empty).contains("No connection moves data"));
        let view = View { filter: LiveFilter::typed("nothing"), ..View::default() };
        assert!(drawn(80, 24, &view, &snapshot()).contains("None of 3 busy connections fits"));
    }

    #[test]
    fn in_chinese_columns_stand_below_their_headings() {
        let (view, snapshot) = (View::default(), snapshot());
        let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
        draw(&mut buffer, &Screen { language: Language::Chinese, ..screen(&view, &snapshot) });
        let text = text(&buffer);
        let lines: Vec<&str> = text.lines().collect();
        assert!(
            lines[0].starts_with("fullpipe top  2 个命名空间的 1034 个连接中 3 个繁忙，每 1 s"),
            "{text}"
        );
        assert!(
            lines[2].starts_with(">  75 % BBBBBBBBBBBB==== 发送缓冲区      55.05 MB/s"),
            "{text}"
        );
        let [before_longest, before_name] = ["最长的限制", "发送缓冲区"]
            .map(|part| text.lines().find_map(|line| line.split_once(part)).unwrap().0);
        assert_eq!(cells(before_longest), cells(before_name), "{text}");
        // Both end in the same cell.
        let [to_rate, to_figure] = ["速率", "55.05 MB/s"]
            .map(|part| text.lines().find_map(|line| Some(line.split_once(part)?.0)).unwrap());
        assert_eq!(cells(to_rate) + 4, cells(to_figure) + 10, "{text}");
        assert!(lines.iter().all(|line| cells(line) <= 80), "{text}");
    }

    #[test]
    fn without_colour_no_cell_has_one() {
        let (snapshot, view) = (snapshot(), View::default());
        for (has_colour, expected) in [(false, false), (true, true)] {
            let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
            let charset = Charset::Ascii;
            draw(&mut buffer, &Screen { charset, has_colour, ..screen(&view, &snapshot) });
            let coloured = buffer.content().iter().any(|cell| {
                cell.fg != ratatui_core::style::Color::Reset
                    || cell.bg != ratatui_core::style::Color::Reset
            });
            assert_eq!(coloured, expected);
            assert!(text(&buffer).is_ascii(), "{}", text(&buffer));
        }
    }

    proptest! {
        #[test]
        fn any_size_can_be_drawn(width in 0_u16..250, height in 0_u16..80, keys in "[ -~]{0,6}") {
            let (snapshot, mut view) = (snapshot(), View::default());
            for key in keys.chars() {
                view.press(KeyEvent::new(KeyCode::Char(key), KeyModifiers::NONE), &snapshot, 3);
                view.press(KeyEvent::new(KeyCode::Down, KeyModifiers::NONE), &snapshot, 3);
            }
            for page in [Page::List, Page::Details, Page::Help] {
                view.page = page;
                drawn(width, height, &view, &snapshot);
            }
        }
    }
}
