//! `fullpipe top`: the host's connections on a screen, by what is lost to limits.

mod details;
mod draw;
#[cfg(test)]
mod examples;
mod help;
mod keys;
mod list;
mod live;
mod marks;
mod row;
mod screen;
mod terminal;
mod then;
mod view;
mod words;

use crate::cmd::past::{PastView, When, tell};
use crate::failure::{Failure, Kind};
use crate::sentence::Sentence;
use crate::terminal::{charset, language, print};
use clap::Args;
use draw::{FRAME_LINES, draw, text};
use fullpipe_flow::connection::filter::LiveFilter;
use fullpipe_host::watch::{Namespaces, Watch};
use fullpipe_kernel::host::clock;
use fullpipe_kernel::process::suspend::Suspension;
use fullpipe_kernel::run::sandbox::Interrupt;
use fullpipe_model::observe::Prefixes;
use fullpipe_model::units::{Duration, Instant};
use keys::Keys;
use ratatui_core::buffer::Buffer;
use ratatui_core::layout::Rect;
use ratatui_crossterm::crossterm::event::{Event, KeyEventKind};
use row::Snapshot;
use screen::Screen;
use std::io::IsTerminal;
use std::net::IpAddr;
use std::sync::Arc;
use terminal::TakenTerminal;
use view::{Request, Sort, View};

/// Show the host's TCP connections on a screen: what holds each, since when, and how much is lost.
///
/// The connection that loses most time to a limit stands first: to a buffer, a window, loss or a
/// slow reader. Time in which the path was full, or the sending application had nothing to send, is
/// not lost. Reads only; as root it shows the connections and processes of all users and of all
/// namespaces.
#[derive(Args)]
#[command(after_help = "\
Keys: ? explains all of them and the letters of the bars; Enter shows one connection's graphs; \
/ filters; l, r, t, n, a order; p holds the picture; q ends.

Examples:
  fullpipe top
  fullpipe top --port 443 --sort rate
  fullpipe top --process nginx --interval 2s
  fullpipe top --prefixes sites.csv      with the site of each peer
  fullpipe top --at 03:00 --for 10m      what `record --sockets` kept of that time
  fullpipe top --once                    one picture as text, for pipes and logs

NO_COLOR=1 switches colours off. For the reasons and remedies of one connection see `fullpipe why`.")]
pub struct Top {
    /// Time between two looks, 100ms to 60s.
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = interval, conflicts_with = "at")]
    interval: Duration,
    /// Order: lost, rate, retransmitted, process or address.
    #[arg(long, value_name = "ORDER", value_enum, default_value = "lost")]
    sort: Sort,
    /// Only these connections: peer ADDRESS, host ADDRESS, net ADDRESS/LENGTH, port N, portrange
    /// N-M, pid N, process TEXT, cgroup TEXT, pod NAMESPACE/NAME, and, or, not, ( ).
    #[arg(long, value_name = "FILTER")]
    filter: Option<LiveFilter>,
    /// Only connections with this port at either end.
    #[arg(long, value_name = "PORT")]
    port: Option<u16>,
    /// Only connections to this address.
    #[arg(long, value_name = "ADDRESS")]
    peer: Option<IpAddr>,
    /// Only connections of this process.
    #[arg(long, value_name = "PID")]
    pid: Option<u32>,
    /// Only connections of processes with this in their name or command.
    #[arg(long, value_name = "NAME")]
    process: Option<String>,
    /// Where peers are, to be shown beside their addresses: a CSV file with a line
    /// `prefix,site[,provider,region]` for each prefix; the longest one counts.
    #[arg(long, value_name = "FILE", value_parser = super::prefixes::read)]
    prefixes: Option<Arc<Prefixes>>,
    #[command(flatten)]
    past: PastView,
    /// Look three times, print one picture as text, and end.
    #[arg(long)]
    once: bool,
}

/// The time between two looks, as it is written.
pub fn interval(text: &str) -> Result<Duration, Sentence> {
    let interval: Duration = text.parse().map_err(|error| Sentence::from(&error))?;
    if !(Duration::from_millis(100)..=Duration::from_secs(60)).contains(&interval) {
        return Err(Sentence::new(
            format!("{interval} must be between 100 ms and 60 s"),
            format!("{interval} 须在 100 ms 与 60 s 之间"),
        ));
    }
    Ok(interval)
}

/// How long the screen waits for a key before it looks whether a signal came.
const KEY_WAIT: Duration = Duration::from_millis(200);

/// How long a picture of the past stands.
const STILL: Duration = Duration::from_secs(3600);

/// Width of the one picture where there is no terminal.
const PLAIN_WIDTH: u16 = 80;

/// The most connections of the one picture: those that lose most.
const PLAIN_ROWS: usize = 1000;

impl Top {
    pub fn run(self) -> Result<u8, Failure> {
        let has_terminal = std::io::stdout().is_terminal() && std::io::stdin().is_terminal();
        if !self.once && !has_terminal {
            return Err(Failure::new(
                Kind::Usage,
                Sentence::new(
                    "top: standard input and output must be a terminal; `fullpipe why` says the same \
                     in lines or as JSON, and `fullpipe top --once` prints one picture as text",
                    "top：标准输入和输出须为终端；`fullpipe why` 以行或 JSON 给出同样的内容，`fullpipe top \
                     --once` 以文本输出一幅画面",
                ),
            ));
        }
        let interrupt = Interrupt::on_signals().map_err(run_failed)?;
        if let Some(at) = self.past.time.at {
            return self.run_then(at, &interrupt);
        }
        let watch = Watch::open(Namespaces::All)
            .map_err(|refused| Failure::new(Kind::Missing, Sentence::from(&refused).of("top")))?;
        let view = View { sort: self.sort, filter: self.filter(), ..View::default() };
        if self.once {
            self.print_once(watch, &view, &interrupt)
        } else {
            let prefixes = self.prefixes.clone().unwrap_or_default();
            let next = clock::now();
            let watched = Some((watch, prefixes));
            let contents = ScreenContents { watched, snapshot: Snapshot::default(), view, next };
            self.show(contents, self.interval, &interrupt)
        }
    }

    /// Shows a time that is past, and then says what is missing of it.
    fn run_then(&self, at: When, interrupt: &Interrupt) -> Result<u8, Failure> {
        let prefixes = self.prefixes.clone().unwrap_or_default();
        let then = then::read(&self.past, at, &self.filter(), &prefixes)?;
        let view = View { sort: self.sort, ..View::default() };
        let code = if self.once {
            self.print_picture(then.snapshot, &view)?
        } else {
            let (snapshot, next) = (then.snapshot, clock::now());
            let contents = ScreenContents { watched: None, snapshot, view, next };
            self.show(contents, then.ground.looks_each, interrupt)?
        };
        tell(&then.ground, then.more, then.asked);
        Ok(code)
    }

    /// Which connections are shown first: all that is given must hold.
    fn filter(&self) -> LiveFilter {
        LiveFilter::all([
            self.filter.clone(),
            self.port.map(LiveFilter::port),
            self.peer.map(LiveFilter::peer),
            self.pid.map(LiveFilter::pid),
            self.process.as_deref().map(LiveFilter::process),
        ])
    }

    fn print_once(
        &self,
        mut watch: Watch,
        view: &View,
        interrupt: &Interrupt,
    ) -> Result<u8, Failure> {
        // The first look says which connections exist, the second which are busy.
        watch.look().map_err(run_failed)?;
        for _ in 0..2 {
            if interrupt.wait(Some(self.interval))? {
                return Ok(Failure::code(Kind::Interrupted));
            }
            watch.look().map_err(run_failed)?;
        }
        let prefixes = self.prefixes.clone().unwrap_or_default();
        self.print_picture(live::snapshot(&watch, &prefixes), view)
    }

    /// Prints a picture as text.
    fn print_picture(&self, mut snapshot: Snapshot, view: &View) -> Result<u8, Failure> {
        snapshot.rows.truncate(PLAIN_ROWS);
        let width = console::Term::stdout().size_checked().map_or(PLAIN_WIDTH, |(_, width)| width);
        // Each connection takes at most three lines.
        let height = view.rows(&snapshot).len().max(1) * 3 + FRAME_LINES;
        let area = Rect::new(0, 0, width, u16::try_from(height).unwrap_or(u16::MAX));
        let mut picture = Buffer::empty(area);
        let screen = screen(&snapshot, view, self.interval);
        let screen = Screen { has_keys: false, ..screen };
        draw(&mut picture, &screen);
        print(&text(&picture))?;
        Ok(0)
    }

    fn show(
        &self,
        mut shown: ScreenContents,
        interval: Duration,
        interrupt: &Interrupt,
    ) -> Result<u8, Failure> {
        let suspension = Suspension::on_signal().map_err(run_failed)?;
        let has_colour = console::colors_enabled();
        let mut terminal = TakenTerminal::take()?;
        let keys = Keys::read();
        loop {
            if interrupt.is_set() {
                return Ok(Failure::code(Kind::Interrupted));
            }
            let mut request = shown.look(interval)?;
            if suspension.is_requested() {
                request = Some(Request::Suspend);
            }
            let left = shown.next.since(clock::now()).min(KEY_WAIT);
            if request.is_none() {
                request = match keys.next(left).map_err(terminal_failed)? {
                    Some(Event::Key(key)) if key.kind == KeyEventKind::Press => {
                        let rows = usize::from(terminal.height()?).saturating_sub(FRAME_LINES) / 2;
                        Some(shown.view.press(key, &shown.snapshot, rows))
                    }
                    Some(Event::Resize(..)) => {
                        terminal.refresh()?;
                        Some(Request::Draw)
                    }
                    _ => None,
                };
            }
            match request {
                Some(Request::Quit) => return Ok(0),
                Some(Request::Interrupt) => return Ok(Failure::code(Kind::Interrupted)),
                Some(Request::Suspend) => {
                    terminal.lend(|| suspension.stop())?.map_err(run_failed)?;
                }
                Some(Request::Draw) => {}
                None => continue,
            }
            shown.view.settle(&shown.snapshot);
            shown.add_facts();
            let screen = Screen { has_colour, ..screen(&shown.snapshot, &shown.view, interval) };
            terminal.draw(|buffer| draw(buffer, &screen))?;
        }
    }
}

/// A screen without colours.
fn screen<'a>(snapshot: &'a Snapshot, view: &'a View, interval: Duration) -> Screen<'a> {
    let (charset, language) = (charset(), language());
    Screen { snapshot, view, interval, charset, language, has_colour: false, has_keys: true }
}

/// What the screen shows, and when it looks again.
struct ScreenContents {
    /// What is looked at, and where peers are; nothing of a time that is past.
    watched: Option<(Watch, Arc<Prefixes>)>,
    snapshot: Snapshot,
    view: View,
    next: Instant,
}

impl ScreenContents {
    /// Looks if it is time, and then asks to be drawn; what is held stays as it is.
    fn look(&mut self, interval: Duration) -> Result<Option<Request>, Failure> {
        let now = clock::now();
        if now < self.next {
            return Ok(None);
        }
        let Some((watch, prefixes)) = &mut self.watched else {
            // It is drawn once; keys do the rest.
            self.next = now + STILL;
            return Ok(Some(Request::Draw));
        };
        watch.look().map_err(run_failed)?;
        // After a pause of the whole process it does not catch up.
        self.next = (self.next + interval).max(now);
        if !self.view.is_paused {
            self.snapshot = live::snapshot(watch, prefixes);
        }
        Ok(Some(Request::Draw))
    }

    /// Fills in the figures of the connection whose details are shown.
    fn add_facts(&mut self) {
        if self.view.page != view::Page::Details || self.view.is_paused {
            return;
        }
        let Some((watch, _)) = &self.watched else { return };
        let selected = self.view.selected;
        let row = self.snapshot.rows.iter_mut().find(|row| Some(row.id) == selected);
        if let Some(row) = row
            && let Some(socket) = live::socket(watch, row.id)
        {
            row.facts = live::facts(socket);
        }
    }
}

fn terminal_failed(cause: std::io::Error) -> Failure {
    let what = Sentence::new("top: read keys", "top：读取按键");
    Failure::new(Kind::Run, what.with(cause))
}

fn run_failed(refused: fullpipe_kernel::Refused) -> Failure {
    Failure::new(Kind::Run, Sentence::from(&refused).of("top"))
}
