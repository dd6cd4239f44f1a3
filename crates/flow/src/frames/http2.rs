//! The frames of HTTP/2 (RFC 9113 section 4.1): their headers, and of their contents only what
//! settings and window updates say. Whatever else they carry is counted and passed over.

use super::FrameStop;

/// What a client says before its first frame (RFC 9113 section 3.4).
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// The length of a frame's header.
const HEADER: usize = 9;
/// An entry of the settings, and the contents of a window update.
const SETTING: usize = 6;
const UPDATE: usize = 4;

const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RESET: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const INITIAL_WINDOW_SIZE: u16 = 4;
/// The largest window (RFC 9113 section 6.9.1).
pub(super) const LARGEST_WINDOW: u32 = (1 << 31) - 1;

/// What a frame says of flow control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FlowFrame {
    /// Data, with its padding: all of it counts.
    Data { stream: u32, length: u32, ends: bool },
    /// The fields of a request or an answer, or those behind its data.
    Headers { stream: u32, ends: bool },
    /// A stream ends early.
    Reset { stream: u32 },
    /// What each stream may carry at first.
    InitialWindow(u32),
    /// More may be sent in a stream, or of stream 0 in the connection.
    WindowUpdate { stream: u32, by: u32 },
}

/// Where in a frame the reader is.
#[derive(Debug, Clone, Copy)]
enum FramePart {
    Preface,
    Header,
    /// The entries of settings.
    Settings,
    /// The contents of a window update.
    Update,
    Passed,
}

/// Reads the frames that one end sends.
#[derive(Debug)]
pub(super) struct FrameReader {
    part: FramePart,
    /// Bytes of the part that are read, and those of what is put together.
    had: usize,
    bytes: [u8; HEADER],
    /// Bytes of the frame that are still to come.
    left: usize,
    stream: u32,
    /// The data that is passed over: its length, and whether it ends its stream.
    data: Option<(u32, bool)>,
    has_settings: bool,
    /// Whether frames came that nobody answers, and whether bytes of others did, since it was asked
    /// last.
    has_unanswered: bool,
    has_others: bool,
}

impl FrameReader {
    /// A reader of what the client, or the server, sends.
    pub fn new(is_client: bool) -> Self {
        let part = if is_client { FramePart::Preface } else { FramePart::Header };
        FrameReader {
            part,
            had: 0,
            bytes: [0; HEADER],
            left: 0,
            stream: 0,
            data: None,
            has_settings: false,
            has_unanswered: false,
            has_others: false,
        }
    }

    /// Whether what was read since this was asked last is nothing but frames that nobody answers:
    /// window updates, and acknowledgements of settings and pings.
    pub fn takes_only_unanswered(&mut self) -> bool {
        let has_unanswered = std::mem::take(&mut self.has_unanswered);
        let has_others = std::mem::take(&mut self.has_others);
        let is_between = matches!(self.part, FramePart::Header) && self.had == 0;
        has_unanswered && !has_others && is_between
    }

    /// Whether it is HTTP/2: its settings were read.
    pub fn is_http2(&self) -> bool {
        self.has_settings
    }

    /// How many bytes of a frame that has begun are to come.
    pub fn rest_of_frame(&self) -> Option<usize> {
        (self.left > 0).then_some(self.left)
    }

    /// Reads on. Each frame is passed to `frame` once its header, and what of its contents is
    /// wanted, is complete; data when its last byte has come.
    pub fn read(
        &mut self,
        bytes: &[u8],
        mut frame: impl FnMut(FlowFrame),
    ) -> Result<(), FrameStop> {
        let is_update = matches!(self.part, FramePart::Header | FramePart::Update);
        self.has_others |= !is_update && !bytes.is_empty();
        let mut rest = bytes;
        while !rest.is_empty() {
            rest = self.step(rest, &mut frame)?;
        }
        Ok(())
    }

    /// Reads some of the bytes, and gives the others.
    fn step<'a>(
        &mut self,
        bytes: &'a [u8],
        frame: &mut impl FnMut(FlowFrame),
    ) -> Result<&'a [u8], FrameStop> {
        Ok(match self.part {
            FramePart::Preface => {
                let wanted = &PREFACE[self.had..];
                let length = wanted.len().min(bytes.len());
                if bytes[..length] != wanted[..length] {
                    return Err(FrameStop::NotHttp2);
                }
                self.had += length;
                if self.had == PREFACE.len() {
                    (self.part, self.had) = (FramePart::Header, 0);
                }
                &bytes[length..]
            }
            FramePart::Header => {
                let (whole, rest) = self.gather(bytes, HEADER);
                if whole {
                    self.begins(frame)?;
                }
                rest
            }
            FramePart::Settings => {
                let (whole, rest) = self.gather(bytes, SETTING);
                if whole {
                    self.left -= SETTING;
                    self.setting(frame)?;
                    if self.left == 0 {
                        self.part = FramePart::Header;
                    }
                }
                rest
            }
            FramePart::Update => {
                let (whole, rest) = self.gather(bytes, UPDATE);
                if whole {
                    (self.part, self.left) = (FramePart::Header, 0);
                    self.has_unanswered = true;
                    let by = word(&self.bytes) & LARGEST_WINDOW;
                    frame(FlowFrame::WindowUpdate { stream: self.stream, by });
                }
                rest
            }
            FramePart::Passed => {
                let length = self.left.min(bytes.len());
                self.left -= length;
                if self.left == 0 {
                    self.part = FramePart::Header;
                    if let Some((length, ends)) = self.data.take() {
                        frame(FlowFrame::Data { stream: self.stream, length, ends });
                    }
                }
                &bytes[length..]
            }
        })
    }

    /// Puts together `wanted` bytes. Gives whether they are whole, and the rest.
    fn gather<'a>(&mut self, bytes: &'a [u8], wanted: usize) -> (bool, &'a [u8]) {
        let length = (wanted - self.had).min(bytes.len());
        let (own, rest) = bytes.split_at(length);
        self.bytes[self.had..self.had + length].copy_from_slice(own);
        self.had += length;
        let is_whole = self.had == wanted;
        if is_whole {
            self.had = 0;
        }
        (is_whole, rest)
    }

    /// Reads a frame's header.
    fn begins(&mut self, frame: &mut impl FnMut(FlowFrame)) -> Result<(), FrameStop> {
        let [high, middle, low, kind, flags, ..] = self.bytes;
        let length = u32::from_be_bytes([0, high, middle, low]);
        let stream = word(&self.bytes[5..]) & LARGEST_WINDOW;
        if !self.has_settings {
            // Each end says its settings first.
            let is_first = kind == SETTINGS && flags & ACK == 0 && stream == 0;
            if !is_first || !length.is_multiple_of(SETTING as u32) {
                return Err(FrameStop::NotHttp2);
            }
            self.has_settings = true;
        }
        (self.left, self.stream) = (length as usize, stream);
        let acknowledges = flags & ACK != 0 && matches!(kind, SETTINGS | PING);
        self.has_unanswered |= acknowledges;
        self.has_others |= !acknowledges && kind != WINDOW_UPDATE;
        let ends = flags & END_STREAM != 0;
        self.part = FramePart::Passed;
        match kind {
            DATA if length > 0 => self.data = Some((length, ends)),
            DATA => frame(FlowFrame::Data { stream, length, ends }),
            HEADERS => frame(FlowFrame::Headers { stream, ends }),
            RESET => frame(FlowFrame::Reset { stream }),
            SETTINGS if flags & ACK == 0 => {
                if !length.is_multiple_of(SETTING as u32) {
                    return Err(FrameStop::Malformed);
                }
                self.part = FramePart::Settings;
            }
            WINDOW_UPDATE if length as usize == UPDATE => self.part = FramePart::Update,
            WINDOW_UPDATE => return Err(FrameStop::Malformed),
            _ => {}
        }
        if self.left == 0 {
            self.part = FramePart::Header;
        }
        Ok(())
    }

    /// Reads an entry of the settings.
    fn setting(&self, frame: &mut impl FnMut(FlowFrame)) -> Result<(), FrameStop> {
        let name = u16::from_be_bytes([self.bytes[0], self.bytes[1]]);
        let value = word(&self.bytes[2..]);
        match (name, value) {
            (INITIAL_WINDOW_SIZE, 0..=LARGEST_WINDOW) => frame(FlowFrame::InitialWindow(value)),
            (INITIAL_WINDOW_SIZE, _) => return Err(FrameStop::Malformed),
            _ => {}
        }
        Ok(())
    }
}

/// The first four bytes, as a number.
fn word(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |word| u32::from_be_bytes(*word))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A frame of these contents.
    pub fn frame(kind: u8, flags: u8, stream: u32, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32).to_be_bytes();
        [&length[1..], &[kind, flags], &stream.to_be_bytes(), body].concat()
    }

    fn read_all(is_client: bool, pieces: &[&[u8]]) -> Result<Vec<FlowFrame>, FrameStop> {
        let mut frames = Vec::new();
        let mut reader = FrameReader::new(is_client);
        for piece in pieces {
            reader.read(piece, |frame| frames.push(frame))?;
        }
        Ok(frames)
    }

    /// Whatever kind of frame has begun, so many of its bytes are to come, and none once it ended.
    #[test]
    fn what_is_to_come_of_a_frame_is_known() {
        for kind in [DATA, HEADERS, SETTINGS, WINDOW_UPDATE, 9] {
            let body = [0; 12];
            let body = &body[..if kind == WINDOW_UPDATE { UPDATE } else { 12 }];
            let one = frame(kind, 0, u32::from(kind == DATA), body);
            let mut reader = FrameReader::new(false);
            reader.read(&frame(SETTINGS, 0, 0, &[]), |_| {}).unwrap();
            reader.read(&one[..HEADER], |_| {}).unwrap();
            assert_eq!(reader.rest_of_frame(), Some(body.len()), "{kind}");
            reader.read(&one[HEADER..], |_| {}).unwrap();
            assert_eq!(reader.rest_of_frame(), None, "{kind}");
        }
    }

    fn conversation() -> (Vec<u8>, Vec<FlowFrame>) {
        let bytes = [
            PREFACE.to_vec(),
            frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9, 0, 4, 0, 1, 0, 0]),
            frame(SETTINGS, ACK, 0, &[]),
            frame(WINDOW_UPDATE, 0, 0, &[0x80, 0, 1, 0]),
            frame(HEADERS, 4, 1, b"any"),
            frame(DATA, 0, 1, &[1; 300]),
            frame(9, 0, 1, &[0; 20]),
            frame(DATA, END_STREAM, 1, &[]),
            frame(RESET, 0, 3, &[0; 4]),
        ]
        .concat();
        let frames = vec![
            FlowFrame::InitialWindow(65_536),
            FlowFrame::WindowUpdate { stream: 0, by: 256 },
            FlowFrame::Headers { stream: 1, ends: false },
            FlowFrame::Data { stream: 1, length: 300, ends: false },
            FlowFrame::Data { stream: 1, length: 0, ends: true },
            FlowFrame::Reset { stream: 3 },
        ];
        (bytes, frames)
    }

    #[test]
    fn a_question_is_told_from_updates_and_acknowledgements() {
        let update = frame(WINDOW_UPDATE, 0, 1, &[0, 0, 1, 0]);
        let asks = frame(HEADERS, 4, 3, b"any");
        let [ping, pong] = [0, ACK].map(|flags| frame(PING, flags, 0, &[0; 8]));
        let settled = frame(SETTINGS, ACK, 0, &[]);
        for (says, is_update) in [
            (vec![update.clone()], true),
            (vec![[update.clone(), update.clone()].concat()], true),
            (vec![update[..11].to_vec()], false),
            (vec![update[..11].to_vec(), update[11..].to_vec()], true),
            (vec![[update.clone(), asks.clone()].concat()], false),
            (vec![[asks.clone(), update.clone()].concat()], false),
            (vec![ping.clone()], false),
            (vec![pong], true),
            (vec![[settled.clone(), update.clone()].concat()], true),
            (vec![[settled, ping].concat()], false),
            (vec![asks[..10].to_vec(), [&asks[10..], &update].concat()], false),
            (vec![vec![]], false),
        ] {
            let mut reader = FrameReader::new(false);
            reader.read(&frame(SETTINGS, 0, 0, &[]), |_| {}).unwrap();
            assert!(!reader.takes_only_unanswered());
            let mut last = false;
            for piece in &says {
                reader.read(piece, |_| {}).unwrap();
                last = reader.takes_only_unanswered();
            }
            assert_eq!(last, is_update, "{says:?}");
        }
    }

    #[test]
    fn what_is_not_http2_is_told_at_once() {
        for (is_client, says) in [
            (true, &b"GET / HTTP/1.1\r\n"[..]),
            (true, b"PRI * HTTP/2.1"),
            (false, b"HTTP/1.1 200 OK\r\n"),
            (false, &[0, 0, 0, 4, 1, 0, 0, 0, 0]),
        ] {
            assert_eq!(read_all(is_client, &[says]), Err(FrameStop::NotHttp2), "{says:?}");
        }
        let settings = frame(SETTINGS, 0, 0, &[0, 4, 0x80, 0, 0, 0]);
        assert_eq!(read_all(false, &[&settings]), Err(FrameStop::Malformed), "beyond any window");
    }

    proptest! {
        #[test]
        fn pieces_of_any_length_give_the_same_frames(
            cuts in proptest::collection::vec(0_usize..420, 0..30),
        ) {
            let (bytes, frames) = conversation();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(bytes.len())).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            prop_assert_eq!(read_all(true, &pieces), Ok(frames));
        }

        #[test]
        fn any_bytes_are_read(bytes in proptest::collection::vec(any::<u8>(), 0..400)) {
            let begun = [frame(SETTINGS, 0, 0, &[]), bytes].concat();
            let _ = read_all(false, &[&begun]);
        }
    }
}
