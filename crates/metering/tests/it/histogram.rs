//! Histograms of durations.

use portolan_metering::{Histogram, histogram::SCALE};
use proptest::{collection::vec, prelude::*};

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    for value in values {
        histogram.record(*value);
    }
    histogram
}

fn merged(parts: &[&Histogram]) -> Histogram {
    let mut all = Histogram::default();
    for part in parts {
        all.merge(part);
    }
    all
}

/// Durations from a microsecond to nineteen hours, as often short as long.
fn durations() -> impl Strategy<Value = Vec<u64>> {
    vec((0_u32..36, any::<u64>()), 0..200).prop_map(|pairs| {
        pairs
            .into_iter()
            .map(|(power, within)| (1_u64 << power) + within % (1 << power))
            .collect()
    })
}

proptest! {
    /// Rule: METER-3.
    #[test]
    fn a_merge_is_associative_and_commutative(
        a in durations(), b in durations(), c in durations(), scale in 0..=SCALE,
    ) {
        let (a, mut b, c) = (of(&a), of(&b), of(&c));
        b.downscale(scale);
        let left = merged(&[&merged(&[&a, &b]), &c]);
        prop_assert_eq!(&left, &merged(&[&a, &merged(&[&b, &c])]));
        prop_assert_eq!(&left, &merged(&[&c, &b, &a]));
        prop_assert_eq!(left.count(), a.count() + b.count() + c.count());
    }

    /// Rule: METER-3. A coarser histogram is the one that counts at that scale.
    #[test]
    fn a_merge_of_parts_is_the_histogram_of_all(all in durations(), cut in 0_usize..200, scale in 0..=SCALE) {
        let (one, two) = all.split_at(cut.min(all.len()));
        let (mut one, mut two, mut whole) = (of(one), of(two), of(&all));
        prop_assert_eq!(&merged(&[&one, &two]), &whole);
        one.downscale(scale);
        two.downscale(scale);
        whole.downscale(scale);
        prop_assert_eq!(one.is_empty() && two.is_empty(), whole.is_empty());
        one.merge(&two);
        prop_assert_eq!(one, whole);
    }

    /// Rule: METER-4.
    #[test]
    fn a_quantile_is_within_4_4_percent(mut all in durations(), q in 0.0_f64..=1.0) {
        prop_assume!(!all.is_empty());
        let histogram = of(&all);
        all.sort_unstable();
        let rank = ((q * all.len() as f64).ceil() as usize).clamp(1, all.len());
        let exact = all[rank - 1] as f64;
        let seen = histogram.quantile(q).unwrap();
        prop_assert!((seen - exact).abs() <= 0.044 * exact, "{seen} of {exact}");
    }

    /// Rule: METER-3.
    #[test]
    fn bytes_read_back_as_the_same_histogram(all in durations(), scale in 0..=SCALE) {
        let mut histogram = of(&all);
        histogram.downscale(scale);
        let mut bytes = Vec::new();
        histogram.encode(&mut bytes);
        prop_assert_eq!(Histogram::decode(&bytes), Ok(histogram));
    }

    #[test]
    fn foreign_bytes_are_refused_or_a_histogram(bytes in vec(any::<u8>(), 0..64)) {
        if let Ok(histogram) = Histogram::decode(&bytes) {
            let mut again = Vec::new();
            histogram.encode(&mut again);
            prop_assert_eq!(Histogram::decode(&again), Ok(histogram));
        }
    }
}

/// The bounds of buckets are 2^(k/8), and belong to the bucket below.
#[test]
fn a_power_of_two_ends_its_bucket() {
    for power in 1..36 {
        let at = 1_u64 << power;
        let both = of(&[at, at + 1]);
        assert_eq!(both.buckets().count(), 2, "2^{power}");
        let upper = both.buckets().next().unwrap().0;
        assert!((upper - at as f64).abs() < 1e-6 * upper, "{upper} of {at}");
    }
    assert_eq!(of(&[0, 1]).quantile(0.5), Some(1.0));
    assert_eq!(of(&[u64::MAX, 1 << 37, 1 << 36]).buckets().count(), 1);
}

#[test]
fn the_bytes_of_usual_calls_are_few() {
    let calls: Vec<u64> = (0..10_000).map(|n| 2_000 + n % 6_000).collect();
    let mut bytes = Vec::new();
    of(&calls).encode(&mut bytes);
    assert!(bytes.len() <= 80, "{}", bytes.len());
}

#[test]
fn nothing_has_no_quantile() {
    assert_eq!(Histogram::decode(&[]), Ok(Histogram::default()));
    assert_eq!(Histogram::default().quantile(0.5), None);
}
