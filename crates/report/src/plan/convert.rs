//! One quantity in all of the units in which people meet it, for `fullpipe calc convert`.

use crate::Layout;
use crate::table::{Column, Table};
use fullpipe_flow::Language;
use fullpipe_model::units::{Bytes, Duration, Rate, column};
use serde::Serialize;

/// A rate in the units of links, of programs and of curl.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Conversion {
    /// Bits a second.
    #[serde(rename = "rate_bps", with = "column::rate")]
    rate: Rate,
    /// 10^6 bits a second.
    mbit_per_s: f64,
    /// 10^6 bytes a second.
    megabytes_per_s: f64,
    /// 2^20 bytes a second, which curl prints as `M`.
    mebibytes_per_s: f64,
    /// How long 10^9 bytes take; absent at rate zero.
    #[serde(rename = "gigabyte_us", with = "column::micros_optional")]
    gigabyte: Option<Duration>,
}

impl Conversion {
    /// The units of a rate.
    pub fn new(rate: Rate) -> Self {
        let bits = rate.as_f64();
        Conversion {
            rate,
            mbit_per_s: bits / 1e6,
            megabytes_per_s: bits / 8e6,
            mebibytes_per_s: bits / 8.0 / f64::from(1 << 20),
            gigabyte: rate.time_for(Bytes::new(1_000_000_000)),
        }
    }

    /// A line for each unit, with where one meets it.
    pub fn render(&self, layout: Layout) -> String {
        let mut table = Table::new([
            Column::count("rate"),
            Column::text("unit"),
            Column::text("where one meets it"),
        ]);
        let curls = short(self.mebibytes_per_s);
        let meanings = match layout.language {
            Language::English => [
                "10^6 bits a second: links, tc, ethtool, iperf3".into(),
                "10^6 bytes a second, of 8 bits: most programs".into(),
                format!("2^20 bytes a second: curl prints {curls}M"),
            ],
            Language::Chinese => [
                "每秒 10^6 比特：链路、tc、ethtool、iperf3".into(),
                "每秒 10^6 字节，每字节 8 比特：大多数程序".into(),
                format!("每秒 2^20 字节：curl 显示 {curls}M"),
            ],
        };
        let units = ["Mbit/s", "MB/s", "MiB/s"];
        let values = [self.mbit_per_s, self.megabytes_per_s, self.mebibytes_per_s];
        for ((value, unit), meaning) in values.into_iter().zip(units).zip(meanings) {
            table.row([short(value), unit.into(), meaning]);
        }
        let mut text = table.render(layout);
        if let Some(time) = self.gigabyte {
            text += &match layout.language {
                Language::English => {
                    format!("1 GB takes {time}, headers and slow start not counted\n")
                }
                Language::Chinese => format!("1 GB 需要 {time}，不计报头和慢启动\n"),
            };
        }
        text
    }
}

/// Four digits or more, without zeros at the end behind the point.
fn short(value: f64) -> String {
    let before = value.max(1.0).log10().floor() as usize;
    let text = format!("{value:.0$}", 3_usize.saturating_sub(before));
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
}

/// A rate as `calc convert` takes it: as everywhere, or as curl prints it (`38.7M`: 2^20 bytes a
/// second; also `k` and `G`). A plain number could be any of them.
///
/// # Errors
/// It is neither: a sentence with examples.
pub fn rate_or_curls(text: &str) -> Result<Rate, String> {
    if let Ok(rate) = text.parse::<Rate>() {
        return Ok(rate);
    }
    let (number, power) = match text.char_indices().last() {
        Some((at, 'k' | 'K')) => (&text[..at], 10),
        Some((at, 'M')) => (&text[..at], 20),
        Some((at, 'G')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let bytes = number.parse::<f64>().ok().filter(|value| value.is_finite() && *value >= 0.0);
    let bytes = bytes.ok_or_else(|| {
        format!("'{text}' is no rate: 1gbit, 100mbit, 125MB/s, or as curl prints it: 38.7M")
    })?;
    if power == 0 {
        return Err(format!(
            "'{text}' has no unit: {text}mbit as links have it, {text}MB/s as programs count it, or \
             {text}M as curl prints it"
        ));
    }
    Ok(Rate::from_bits_per_sec_f64(bytes * 8.0 * f64::from(1_u32 << power)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_link_and_what_curl_says_of_it() {
        let text = Conversion::new("1gbit".parse().unwrap()).render(Layout::default());
        for part in ["1000", "125", "119.2", "curl prints 119.2M", "1 GB takes 8 s"] {
            assert!(text.contains(part), "{part}:\n{text}");
        }
        // Article B: curl's 38.7M is 324.6 Mbit/s of a link of 1000.
        let rate = rate_or_curls("38.7M").unwrap();
        assert_eq!(rate.to_string(), "324.6 Mbit/s");
        assert_eq!(rate_or_curls("125MB/s").unwrap(), "1gbit".parse().unwrap());
    }

    #[test]
    fn a_number_alone_is_asked_for_its_unit() {
        for number in ["100", "0.5", "125000000"] {
            let asked = rate_or_curls(number).unwrap_err();
            assert!(asked.contains("no unit"), "{asked}");
            // Each of the three that it offers is one.
            for unit in ["mbit", "MB/s", "M"] {
                assert!(asked.contains(&format!("{number}{unit}")), "{asked}");
                assert!(rate_or_curls(&format!("{number}{unit}")).is_ok(), "{number}{unit}");
            }
        }
    }

    #[test]
    fn what_is_no_rate_says_what_is_one() {
        for wrong in ["", "M", "fast", "-1M", "NaN", "1e999M", "1 lightyear"] {
            assert!(rate_or_curls(wrong).unwrap_err().contains("38.7M"), "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_text_and_any_rate_are_answered(text in ".{0,12}", bits: u64) {
            let _ = rate_or_curls(&text);
            let conversion = Conversion::new(Rate::from_bits_per_sec(bits));
            prop_assert!(!conversion.render(Layout::default()).is_empty());
        }
    }
}
