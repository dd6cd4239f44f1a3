//! The terminal while the screen has it, and as it was afterwards.
//!
//! However the program ends (return, error, panic, signal), the terminal is restored: by `Drop`,
//! and on a panic before its message is printed, which would otherwise be lost with the screen.

use ratatui_core::buffer::Buffer;
use ratatui_core::terminal::Terminal;
use ratatui_crossterm::CrosstermBackend;
use ratatui_crossterm::crossterm::cursor::{Hide, Show};
use ratatui_crossterm::crossterm::execute;
use ratatui_crossterm::crossterm::terminal::{
    Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode,
};
use std::io::{self, Stdout};
use std::mem::ManuallyDrop;

/// A terminal in raw mode with a screen of its own.
pub struct TakenTerminal {
    /// Not dropped with the rest: where the terminal is gone, its drop would say so on standard
    /// error, which is gone, too, and panic.
    drawn: ManuallyDrop<Terminal<CrosstermBackend<Stdout>>>,
}

impl TakenTerminal {
    /// Takes the terminal.
    pub fn take() -> io::Result<TakenTerminal> {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            restore();
            before(panic);
        }));
        enter()?;
        // From here on the drop restores, even if the next line fails.
        let guard = RestoreOnDrop(true);
        let drawn = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
        guard.keep();
        Ok(TakenTerminal { drawn })
    }

    /// Draws a picture; only cells that changed are written.
    pub fn draw(&mut self, picture: impl FnOnce(&mut Buffer)) -> io::Result<()> {
        self.drawn.draw(|frame| picture(frame.buffer_mut())).map(|_| ())
    }

    /// How many lines it has.
    pub fn height(&self) -> io::Result<u16> {
        self.drawn.size().map(|size| size.height)
    }

    /// Gives the terminal back while `pause` runs, and takes it again.
    pub fn lend<T>(&mut self, pause: impl FnOnce() -> T) -> io::Result<T> {
        restore();
        let result = pause();
        enter()?;
        self.refresh()?;
        Ok(result)
    }

    /// Empties the screen, so that the next picture is drawn whole. [`Terminal::clear`] would ask
    /// the terminal where its cursor is, and not every terminal answers.
    pub fn refresh(&mut self) -> io::Result<()> {
        execute!(io::stdout(), Clear(ClearType::All))?;
        let new = ManuallyDrop::new(Terminal::new(CrosstermBackend::new(io::stdout()))?);
        drop(ManuallyDrop::into_inner(std::mem::replace(&mut self.drawn, new)));
        Ok(())
    }
}

impl Drop for TakenTerminal {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores when it is dropped, unless it was told to keep the screen.
struct RestoreOnDrop(bool);

impl RestoreOnDrop {
    fn keep(mut self) {
        self.0 = false;
    }
}

impl Drop for RestoreOnDrop {
    fn drop(&mut self) {
        if self.0 {
            restore();
        }
    }
}

fn enter() -> io::Result<()> {
    enable_raw_mode()?;
    execute!(io::stdout(), EnterAlternateScreen, Hide).inspect_err(|_| restore())
}

/// Nothing can be done, or told, where the terminal does not take it.
fn restore() {
    let _ = execute!(io::stdout(), LeaveAlternateScreen, Show);
    let _ = disable_raw_mode();
}
