//! Durations as an exponential histogram (the OpenTelemetry data model, *ExponentialHistogram*).
//!
//! Bucket `i` of scale `s` holds durations in (b^i, b^(i+1)] microseconds, with b = 2^(2^-s). At
//! scale 3, b = 2^(1/8). One microsecond and less is bucket -1; beyond 2^36 µs (19 hours) all is
//! the last bucket.

/// The finest scale: growth 2^(1/8), 8 buckets for each power of two.
pub const SCALE: u8 = 3;

/// The lowest bucket: at most 1 µs. It is the same at each scale.
const LOWEST: i16 = -1;

/// The power of two at which the last bucket of each scale ends, in microseconds.
const LAST_POWER: i16 = 36;

/// `floor(2^(63 + k/8))` for k = 1 to 7: where the buckets between two powers of two end, as the
/// upper 64 bits of a mantissa.
const BOUNDS: [u64; 7] = [
    0x8b95_c1e3_ea8b_d6e6,
    0x9837_f051_8db8_a96f,
    0xa5fe_d6a9_b151_38ea,
    0xb504_f333_f9de_6484,
    0xc567_2a11_5506_dadd,
    0xd744_fcca_d69d_6af4,
    0xeac0_c6e7_dd24_392e,
];

/// Capacity from the start, in buckets: calls of one tool differ by less than that.
const USUAL: usize = 16;

/// The bytes are not of a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the bytes of a histogram")]
pub struct InvalidHistogram;

/// Counts of durations by bucket.
#[derive(Debug, Clone)]
pub struct Histogram {
    scale: u8,
    /// Bucket and count, by bucket; no count is 0.
    buckets: Vec<(i16, u64)>,
}

/// Equal if they count the same, whatever their capacity.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        self.scale == other.scale && self.buckets == other.buckets
    }
}

impl Eq for Histogram {}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            scale: SCALE,
            buckets: Vec::with_capacity(USUAL),
        }
    }
}

/// The bucket of a duration at [`SCALE`].
fn bucket(micros: u64) -> i16 {
    if micros <= 1 {
        return LOWEST;
    }
    let zeros = micros.leading_zeros();
    let power = i16::try_from(63 - zeros).unwrap_or(LAST_POWER);
    if power >= LAST_POWER {
        return LAST_POWER * 8 - 1;
    }
    let mantissa = micros << zeros;
    let within = if mantissa == 1 << 63 {
        0
    } else {
        1 + BOUNDS.iter().filter(|bound| mantissa > **bound).count()
    };
    power * 8 + i16::try_from(within).unwrap_or(8) - 1
}

impl Histogram {
    /// Counts a duration.
    pub fn record(&mut self, micros: u64) {
        let index = bucket(micros) >> (SCALE - self.scale);
        self.add(index, 1);
    }

    fn add(&mut self, index: i16, count: u64) {
        match self.buckets.binary_search_by_key(&index, |(at, _)| *at) {
            Ok(place) => self.buckets[place].1 = self.buckets[place].1.saturating_add(count),
            Err(place) => self.buckets.insert(place, (index, count)),
        }
    }

    /// How many durations it counts.
    pub fn count(&self) -> u64 {
        self.buckets
            .iter()
            .fold(0, |sum, (_, count)| sum.saturating_add(*count))
    }

    /// True if it counts none.
    pub fn is_empty(&self) -> bool {
        self.buckets.is_empty()
    }

    /// The scale, 0 to 3.
    pub fn scale(&self) -> u8 {
        self.scale
    }

    /// Forgets all counts and keeps the capacity.
    pub fn clear(&mut self) {
        self.scale = SCALE;
        self.buckets.clear();
    }

    /// Coarsens it to a scale. A finer scale than its own changes nothing.
    ///
    /// Each bucket lies within one bucket of the coarser scale, so that the result is the
    /// histogram that would have counted at that scale.
    pub fn downscale(&mut self, scale: u8) {
        if scale >= self.scale {
            return;
        }
        let by = self.scale - scale;
        self.scale = scale;
        let mut kept = 0;
        for at in 0..self.buckets.len() {
            let (index, count) = (self.buckets[at].0 >> by, self.buckets[at].1);
            if kept > 0 && self.buckets[kept - 1].0 == index {
                self.buckets[kept - 1].1 = self.buckets[kept - 1].1.saturating_add(count);
            } else {
                self.buckets[kept] = (index, count);
                kept += 1;
            }
        }
        self.buckets.truncate(kept);
    }

    /// Adds the counts of another one, at the coarser of both scales.
    pub fn merge(&mut self, other: &Self) {
        self.downscale(other.scale);
        let by = other.scale - self.scale;
        // Both are ascending: one pass, and an insertion only for a new bucket.
        let mut place = 0;
        for (index, count) in &other.buckets {
            let index = index >> by;
            let rest = self.buckets[place..].iter();
            place += rest.take_while(|(at, _)| *at < index).count();
            match self.buckets.get_mut(place) {
                Some(there) if there.0 == index => there.1 = there.1.saturating_add(*count),
                _ => self.buckets.insert(place, (index, *count)),
            }
        }
    }

    /// The duration below which the share `q` (0 to 1) of all lies, in microseconds. `None` if it
    /// counts none.
    ///
    /// At scale 3 it is within 4.4 % of the exact one: (b - 1) / (b + 1) is 4.33 %.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a rank of calls, and a bound of a bucket"
    )]
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let all = self.count();
        if all == 0 {
            return None;
        }
        let rank = ((q.clamp(0.0, 1.0) * all as f64).ceil() as u64).clamp(1, all);
        let mut seen = 0_u64;
        let (index, _) = self.buckets.iter().find(|(_, count)| {
            seen = seen.saturating_add(*count);
            seen >= rank
        })?;
        if *index == LOWEST {
            return Some(1.0);
        }
        let power = |at: i16| (f64::from(at) / f64::from(1_u16 << self.scale)).exp2();
        let (lower, upper) = (power(*index), power(*index + 1));
        Some(2.0 * lower * upper / (lower + upper))
    }

    /// Upper bound in microseconds and count of each bucket, ascending.
    pub fn buckets(&self) -> impl Iterator<Item = (f64, u64)> {
        let per_power = f64::from(1_u16 << self.scale);
        self.buckets
            .iter()
            .map(move |(index, count)| ((f64::from(index + 1) / per_power).exp2(), *count))
    }

    /// Its bytes: scale, number of buckets, and of each the distance from the bucket before and
    /// the count, as LEB128.
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.push(self.scale);
        write_varint(self.buckets.len() as u64, out);
        let mut before = LOWEST - 1;
        for (index, count) in &self.buckets {
            write_varint(u64::from(index.abs_diff(before)), out);
            write_varint(*count, out);
            before = *index;
        }
    }

    /// Reads [`Self::encode`]. No bytes at all are an empty histogram.
    pub fn decode(bytes: &[u8]) -> Result<Self, InvalidHistogram> {
        let Some((&scale, rest)) = bytes.split_first() else {
            return Ok(Self::default());
        };
        if scale > SCALE {
            return Err(InvalidHistogram);
        }
        let last = (LAST_POWER << scale) - 1;
        let mut bytes = rest.iter();
        let buckets = read_varint(&mut bytes)?;
        if buckets > u64::from((last - LOWEST + 1).unsigned_abs()) {
            return Err(InvalidHistogram);
        }
        let mut this = Self {
            scale,
            buckets: Vec::with_capacity(USUAL.max(usize::try_from(buckets).unwrap_or(USUAL))),
        };
        let (mut index, mut all) = (LOWEST - 1, 0_u64);
        for _ in 0..buckets {
            let distance = i16::try_from(read_varint(&mut bytes)?);
            index = match distance {
                Ok(distance) if distance > 0 => index.checked_add(distance),
                _ => None,
            }
            .filter(|index| *index <= last)
            .ok_or(InvalidHistogram)?;
            let count = read_varint(&mut bytes)?;
            all = all.checked_add(count).ok_or(InvalidHistogram)?;
            if count == 0 {
                return Err(InvalidHistogram);
            }
            this.buckets.push((index, count));
        }
        match bytes.next() {
            None => Ok(this),
            Some(_) => Err(InvalidHistogram),
        }
    }
}

#[expect(clippy::cast_possible_truncation, reason = "seven bits")]
fn write_varint(mut value: u64, out: &mut Vec<u8>) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn read_varint<'b>(bytes: &mut impl Iterator<Item = &'b u8>) -> Result<u64, InvalidHistogram> {
    let mut value = 0_u64;
    for shift in (0..64).step_by(7) {
        let byte = u64::from(*bytes.next().ok_or(InvalidHistogram)?);
        let part = byte & 0x7f;
        if (part << shift) >> shift != part {
            return Err(InvalidHistogram);
        }
        value |= part << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(InvalidHistogram)
}
