//! Reads a message's fields one after another: each is `None` where what was captured ends first.

/// What is left of a message.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    /// The next `count` bytes.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    /// The next number of `N` bytes, the highest first.
    pub fn number<const N: usize>(&mut self) -> Option<usize> {
        let bytes = self.take(N)?;
        Some(bytes.iter().fold(0, |sum, byte| sum << 8 | usize::from(*byte)))
    }

    /// The next block, which begins with its length in `N` bytes.
    pub fn block<const N: usize>(&mut self) -> Option<&'a [u8]> {
        let length = self.number::<N>()?;
        self.take(length)
    }

    /// The same, or as much of the block as there is.
    pub fn part_of_block<const N: usize>(&mut self) -> Option<&'a [u8]> {
        let length = self.number::<N>()?.min(self.0.len());
        self.take(length)
    }

    /// The next text that ends with a zero byte, without that.
    pub fn text(&mut self) -> Option<&'a [u8]> {
        let end = self.0.iter().position(|byte| *byte == 0)?;
        let text = self.take(end)?;
        self.take(1)?;
        Some(text)
    }
}
