//! netem's options as the bytes of `TCA_OPTIONS`: a `struct tc_netem_qopt` followed by attributes.
//!
//! [`encode`] writes every option, including those with default values: a missing attribute would
//! leave an existing discipline as it was, and setting a netem means to have exactly this one.
//! [`decode`] accepts what a kernel reports, and more.

use super::{DISTRIBUTION_MAX, Netem, Shaping, Slot, Spacing};
use fullpipe_model::link::{Chance, LossModel, Overhead, Reorder};
use fullpipe_model::units::{Bytes, Duration, Probability, Rate};
use std::num::NonZeroU32;

// enum TCA_NETEM_*, linux/pkt_sched.h.
const CORR: u16 = 1;
const DELAY_DIST: u16 = 2;
const REORDER: u16 = 3;
const CORRUPT: u16 = 4;
const LOSS: u16 = 5;
const RATE: u16 = 6;
const ECN: u16 = 7;
const RATE64: u16 = 8;
const LATENCY64: u16 = 10;
const JITTER64: u16 = 11;
const SLOT: u16 = 12;
const PRNG_SEED: u16 = 14;
// enum NETEM_LOSS_*
const LOSS_GI: u16 = 1;
const LOSS_GE: u16 = 2;
const NLA_F_NESTED: u16 = 0x8000;
const NLA_TYPE_MASK: u16 = 0x3fff;

/// `struct tc_netem_qopt`: six words of 32 bits.
const QOPT_LEN: usize = 24;
/// The unit of its times is 2^6 = 64 ns (PSCHED_SHIFT).
const TICK_SHIFT: u32 = 6;

/// A value that netem cannot represent, or bytes that are not netem's.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NetemError {
    /// The kernel's field is too narrow.
    #[error("netem {word} {value} is more than the {most} that its field holds")]
    TooMuch {
        /// Which option.
        word: &'static str,
        /// The requested value.
        value: u64,
        /// The largest possible value.
        most: u64,
    },
    /// Rates are in whole bytes per second, and zero means none.
    #[error("netem rate {0} is below one byte a second")]
    Rate(Rate),
    /// The table is longer than the kernel accepts.
    #[error("netem distribution has {0} entries; the kernel takes up to {DISTRIBUTION_MAX}")]
    Distribution(usize),
    /// The bytes are too short.
    #[error("netem options are cut off: {0} bytes")]
    CutOff(usize),
}

/// Encodes the options for the kernel.
pub fn encode(netem: &Netem) -> Result<Vec<u8>, NetemError> {
    if netem.distribution.len() > DISTRIBUTION_MAX {
        return Err(NetemError::Distribution(netem.distribution.len()));
    }
    let (loss, loss_correlation) = match netem.loss {
        LossModel::Random(chance) => (chance.probability, chance.correlation),
        _ => (Probability::ZERO, Probability::ZERO),
    };
    let gap = netem.reorder.map_or(0, |reorder| reorder.gap.get());
    let reorder = netem.reorder.map_or(Chance::NEVER, |reorder| reorder.chance);
    let mut out = Vec::with_capacity(256 + 2 * netem.distribution.len());
    // Kernels before 4.15 know only these times; later ones use LATENCY64 and JITTER64 below.
    let [delay, jitter] = [netem.delay, netem.jitter]
        .map(|time| u32::try_from(time.as_nanos() >> TICK_SHIFT).unwrap_or(u32::MAX));
    let qopt = [delay, netem.limit, scaled(loss), gap, scaled(netem.duplicate.probability), jitter];
    out.extend(words(&qopt));
    let correlations =
        [netem.delay_correlation, loss_correlation, netem.duplicate.correlation].map(scaled);
    put(&mut out, CORR, &words(&correlations));
    put(&mut out, REORDER, &words(&[reorder.probability, reorder.correlation].map(scaled)));
    put(
        &mut out,
        CORRUPT,
        &words(&[netem.corrupt.probability, netem.corrupt.correlation].map(scaled)),
    );
    put_rate(&mut out, netem.rate)?;
    put(&mut out, ECN, &u32::from(netem.ecn).to_ne_bytes());
    put(&mut out, LATENCY64, &nanos("delay", netem.delay)?.to_ne_bytes());
    put(&mut out, JITTER64, &nanos("jitter", netem.jitter)?.to_ne_bytes());
    put_slot(&mut out, netem.slot)?;
    put_loss(&mut out, netem.loss);
    if let Some(seed) = netem.seed {
        put(&mut out, PRNG_SEED, &seed.to_ne_bytes());
    }
    if !netem.distribution.is_empty() {
        let table: Vec<u8> =
            netem.distribution.iter().flat_map(|entry| entry.to_ne_bytes()).collect();
        put(&mut out, DELAY_DIST, &table);
    }
    Ok(out)
}

fn put_rate(out: &mut Vec<u8>, shaping: Option<Shaping>) -> Result<(), NetemError> {
    let shaping = shaping.unwrap_or(Shaping { rate: Rate::ZERO, overhead: Overhead::NONE });
    let Overhead { packet, cell, cell_overhead } = shaping.overhead;
    let bytes = shaping.rate.bytes_per_sec().get();
    if bytes == 0 && shaping.rate > Rate::ZERO {
        return Err(NetemError::Rate(shaping.rate));
    }
    // All ones here mean that the rate needs 64 bits.
    let short = u32::try_from(bytes).unwrap_or(u32::MAX);
    let fields = [short.to_ne_bytes(), packet.to_ne_bytes()].concat();
    let cells =
        [cell.map_or(0, NonZeroU32::get).to_ne_bytes(), cell_overhead.to_ne_bytes()].concat();
    put(out, RATE, &[fields, cells].concat());
    if bytes >= u64::from(u32::MAX) {
        put(out, RATE64, &bytes.to_ne_bytes());
    }
    Ok(())
}

fn put_slot(out: &mut Vec<u8>, slot: Option<Slot>) -> Result<(), NetemError> {
    let mut times = [0u64; 4];
    let (mut packets, mut bytes) = (0, 0);
    if let Some(slot) = slot {
        match slot.spacing {
            Spacing::Between(min, max) => {
                [times[0], times[1]] = [nanos("slot", min)?, nanos("slot", max)?]
            }
            Spacing::Around(delay, jitter) => {
                [times[2], times[3]] = [nanos("slot", delay)?, nanos("slot", jitter)?]
            }
        }
        packets = narrow("slot packets", slot.packets_max.into(), i32::MAX as u64)? as u32;
        bytes = narrow("slot bytes", slot.bytes_max.get(), i32::MAX as u64)? as u32;
    }
    let mut value = Vec::with_capacity(40);
    value.extend(times[..2].iter().flat_map(|time| time.to_ne_bytes()));
    value.extend(words(&[packets, bytes]));
    value.extend(times[2..].iter().flat_map(|time| time.to_ne_bytes()));
    put(out, SLOT, &value);
    Ok(())
}

fn put_loss(out: &mut Vec<u8>, loss: LossModel) {
    let (kind, fields) = match loss {
        // Without the attribute the model is the random one.
        LossModel::Random(_) => return,
        LossModel::State { p13, p31, p32, p23, p14 } => {
            (LOSS_GI, [p13, p31, p32, p14, p23].map(scaled).to_vec())
        }
        // The kernel's h is the probability of surviving in the bad state.
        LossModel::GilbertElliott { p, r, bad, good } => {
            (LOSS_GE, vec![scaled(p), scaled(r), u32::MAX - scaled(bad), scaled(good)])
        }
    };
    let mut nested = Vec::with_capacity(24);
    put(&mut nested, kind, &words(&fields));
    put(out, LOSS | NLA_F_NESTED, &nested);
}

/// Decodes the options that a kernel reports; they never contain the distribution.
pub fn decode(options: &[u8]) -> Result<Netem, NetemError> {
    let Some((qopt, rest)) = options.split_first_chunk::<QOPT_LEN>() else {
        return Err(NetemError::CutOff(options.len()));
    };
    let [latency, limit, loss, gap, duplicate, jitter] = u32s(qopt);
    let [delay, jitter] =
        [latency, jitter].map(|ticks| Duration::from_nanos(u64::from(ticks) << TICK_SHIFT));
    let mut netem = Netem { limit, delay, jitter, ..Netem::default() };
    netem.loss = LossModel::Random(share(loss).into());
    netem.duplicate = share(duplicate).into();
    netem.reorder =
        NonZeroU32::new(gap).map(|gap| Reorder { chance: Probability::ONE.into(), gap });
    let mut rate = [0u8; 16];
    let mut rate64 = None;
    for (kind, value) in attributes(rest) {
        match kind {
            CORR => read_correlations(&mut netem, value),
            REORDER => {
                let [probability, correlation] = u32s(value);
                if let Some(reorder) = &mut netem.reorder {
                    reorder.chance =
                        Chance { probability: share(probability), correlation: share(correlation) };
                }
            }
            CORRUPT => {
                let [probability, correlation] = u32s(value);
                netem.corrupt =
                    Chance { probability: share(probability), correlation: share(correlation) };
            }
            RATE => fill(&mut rate, value),
            RATE64 => rate64 = Some(u64_of(value)),
            ECN => netem.ecn = u32s::<1>(value)[0] != 0,
            LATENCY64 => netem.delay = Duration::from_nanos(u64_of(value)),
            JITTER64 => netem.jitter = Duration::from_nanos(u64_of(value)),
            SLOT => netem.slot = read_slot(value),
            LOSS => read_loss(&mut netem.loss, value),
            PRNG_SEED => netem.seed = Some(u64_of(value)),
            _ => {}
        }
    }
    netem.rate = read_rate(&rate, rate64);
    Ok(netem)
}

fn read_correlations(netem: &mut Netem, value: &[u8]) {
    let [delay, loss, duplicate] = u32s(value);
    netem.delay_correlation = share(delay);
    if let LossModel::Random(chance) = &mut netem.loss {
        chance.correlation = share(loss);
    }
    netem.duplicate.correlation = share(duplicate);
}

fn read_loss(loss: &mut LossModel, nested: &[u8]) {
    for (kind, value) in attributes(nested) {
        match kind {
            LOSS_GI => {
                let [p13, p31, p32, p14, p23] = u32s(value).map(share);
                *loss = LossModel::State { p13, p31, p32, p23, p14 };
            }
            LOSS_GE => {
                let [p, r, h, good] = u32s(value);
                let bad = share(u32::MAX - h);
                *loss =
                    LossModel::GilbertElliott { p: share(p), r: share(r), bad, good: share(good) };
            }
            _ => {}
        }
    }
}

fn read_rate(fields: &[u8; 16], rate64: Option<u64>) -> Option<Shaping> {
    let [short, overhead, cell, cell_overhead] = u32s(fields);
    let bytes = rate64.unwrap_or(short.into());
    (bytes > 0).then(|| Shaping {
        rate: Rate::from_bits_per_sec(bytes.saturating_mul(8)),
        overhead: Overhead {
            packet: overhead.cast_signed(),
            cell: NonZeroU32::new(cell),
            cell_overhead: cell_overhead.cast_signed(),
        },
    })
}

fn read_slot(value: &[u8]) -> Option<Slot> {
    let mut fields = [0u8; 40];
    fill(&mut fields, value);
    let [packets, bytes] = u32s(&fields[16..]);
    let [min, max, delay, jitter] =
        [0, 8, 24, 32].map(|at| Duration::from_nanos(u64_of(&fields[at..])));
    let spacing = match (min.max(max), delay.max(jitter)) {
        (Duration::ZERO, Duration::ZERO) => return None,
        (Duration::ZERO, _) => Spacing::Around(delay, jitter),
        _ => Spacing::Between(min, max),
    };
    // The kernel reports "any number" as the largest value of the field.
    let [packets_max, bytes] =
        [packets, bytes].map(|number| if number == i32::MAX as u32 { 0 } else { number });
    Some(Slot { spacing, packets_max, bytes_max: Bytes::new(bytes.into()) })
}

/// Converts to netem's scale, where all ones is certainty.
fn scaled(probability: Probability) -> u32 {
    (probability.get() * f64::from(u32::MAX)).round() as u32
}

fn share(scaled: u32) -> Probability {
    Probability::new(f64::from(scaled) / f64::from(u32::MAX)).unwrap_or(Probability::ONE)
}

fn nanos(word: &'static str, time: Duration) -> Result<u64, NetemError> {
    narrow(word, time.as_nanos(), i64::MAX as u64)
}

fn narrow(word: &'static str, value: u64, most: u64) -> Result<u64, NetemError> {
    if value <= most { Ok(value) } else { Err(NetemError::TooMuch { word, value, most }) }
}

fn words(fields: &[u32]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_ne_bytes()).collect()
}

fn put(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    // The longest value is the table of a distribution, 32 KiB.
    let length = (4 + value.len()) as u16;
    out.extend_from_slice(&length.to_ne_bytes());
    out.extend_from_slice(&kind.to_ne_bytes());
    out.extend_from_slice(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// The attributes of `bytes`, up to the first that does not fit.
fn attributes(mut bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    std::iter::from_fn(move || {
        let [l0, l1, k0, k1, ..] = *bytes else { return None };
        let length = usize::from(u16::from_ne_bytes([l0, l1]));
        let value = bytes.get(4..length)?;
        bytes = bytes.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((u16::from_ne_bytes([k0, k1]) & NLA_TYPE_MASK, value))
    })
}

/// The first `N` numbers of `bytes`; missing ones are zero.
fn u32s<const N: usize>(bytes: &[u8]) -> [u32; N] {
    std::array::from_fn(|i| {
        let mut field = [0; 4];
        fill(&mut field, bytes.get(4 * i..).unwrap_or_default());
        u32::from_ne_bytes(field)
    })
}

fn u64_of(bytes: &[u8]) -> u64 {
    let mut field = [0; 8];
    fill(&mut field, bytes);
    u64::from_ne_bytes(field)
}

fn fill(field: &mut [u8], bytes: &[u8]) {
    let length = field.len().min(bytes.len());
    field[..length].copy_from_slice(&bytes[..length]);
}

#[cfg(test)]
mod tests;
