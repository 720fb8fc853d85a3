//! `police` against a model that is written the other way round, and what it promises.
//!
//! The model knows no buckets: it keeps when each rate would be done with what conformed (the generic cell
//! rate algorithm as virtual scheduling, ITU-T I.371 annex A), in signed 128-bit numbers.

use proptest::prelude::*;
use quietcore_core::Nanos;
use quietcore_qdisc::action::{ControlAction, Police, PoliceRate, PoliceSettings};
use quietcore_qdisc::{LinkLayer, PacketSize, Rate};

const SECOND: i128 = 1_000_000_000;

/// What is asked for, in plain numbers.
#[derive(Clone, Copy, Debug)]
struct Asked {
    /// Bytes per second, and nanoseconds of burst.
    rate: Option<(u64, u64)>,
    peak: Option<u64>,
    mtu: u32,
    overhead: u16,
    cells: bool,
}

impl Asked {
    fn built(self) -> PoliceSettings {
        let layer = if self.cells { LinkLayer::Atm } else { LinkLayer::Ethernet };
        let rate = |bytes: u64| {
            let rate = Rate::bytes_per_second(bytes).expect("no test has a rate of 0");
            rate.overhead(self.overhead.into()).link_layer(layer)
        };
        PoliceSettings {
            rate: self.rate.map(|(bytes, burst)| PoliceRate { rate: rate(bytes), burst: Nanos(burst) }),
            peak: self.peak.map(rate),
            mtu: self.mtu,
            conform: ControlAction::Pipe,
            exceed: ControlAction::Drop,
        }
    }

    /// Nanoseconds that a packet takes at so many bytes per second.
    fn cost(self, rate: u64, bytes: u32) -> i128 {
        let bytes = i128::from(bytes) + i128::from(self.overhead);
        let bytes = if self.cells { (bytes + 47) / 48 * 53 } else { bytes };
        bytes * SECOND / i128::from(rate)
    }
}

/// When each rate is done with what conformed.
#[derive(Debug)]
struct Model {
    asked: Asked,
    last: i128,
    done: i128,
    /// Of the peak rate, by a clock that no pause moves on by more than a burst.
    peak_clock: i128,
    peak_done: i128,
}

impl Model {
    fn new(asked: Asked, now: i128) -> Self {
        Self { asked, last: now, done: now, peak_clock: now, peak_done: now }
    }

    fn conforms(&mut self, now: i128, size: PacketSize) -> bool {
        if i128::from(size.bytes) > i128::from(self.asked.mtu) * i128::from(size.packets) {
            return false;
        }
        let Some((rate, burst)) = self.asked.rate else { return true };
        let burst = i128::from(burst);
        let done = self.done.max(now) + self.asked.cost(rate, size.bytes);
        let clock = self.peak_clock + (now - self.last).min(burst);
        let mut is_met = done - now <= burst;
        let mut peak_done = self.peak_done;
        if let Some(peak) = self.asked.peak {
            peak_done = peak_done.max(clock) + self.asked.cost(peak, size.bytes);
            is_met &= peak_done - clock <= self.asked.cost(peak, self.asked.mtu);
        }
        if is_met {
            (self.last, self.done, self.peak_clock, self.peak_done) = (now, done, clock, peak_done);
        }
        is_met
    }
}

fn asked() -> impl Strategy<Value = Asked> {
    let rate = proptest::option::weighted(0.9, (1_000_u64..2_000_000, 0..20_000_000_u64));
    let peak = proptest::option::of(1_000_u64..20_000_000);
    let layer = (0..60_u16, any::<bool>());
    (rate, peak, 40_u32..3_000, layer).prop_map(|(rate, peak, mtu, (overhead, cells))| Asked {
        rate,
        peak,
        mtu,
        overhead,
        cells,
    })
}

proptest! {
    /// Goal: who conforms is who conforms to the model, packet by packet. Method: random rates, bursts and
    /// peaks; packets of all lengths around `mtu`, single and several as one, at once and after long pauses.
    #[test]
    fn as_the_model(
        asked in asked(),
        packets in proptest::collection::vec((prop_oneof![Just(0_u64), 0..3_000_000_u64,
            0..90_000_000_u64], 1..3_200_u32, 1..4_u32), 1..200),
        begin in 0..1_u64 << 40,
    ) {
        let mut police = Police::new(asked.built(), Nanos(begin));
        let mut model = Model::new(asked, begin.into());
        let mut now = begin;
        for (pause, bytes, packets) in packets {
            now += pause;
            let size = PacketSize { bytes: bytes.max(packets), packets };
            let verdict = police.ask(Nanos(now), size, size.each());
            prop_assert_eq!(!verdict.exceeds, model.conforms(now.into(), size), "{:?} at {}", size, now);
            let said = if verdict.exceeds { ControlAction::Drop } else { ControlAction::Pipe };
            prop_assert_eq!(verdict.control, said);
        }
    }

    /// Goal: in no span does more conform than the rate and the burst allow. Method: a greedy sender.
    #[test]
    fn no_more_than_the_rate(
        rate in 1_000_u64..1_000_000,
        burst in 0..50_000_000_u64,
        step in 1..5_000_000_u64,
    ) {
        let asked = Asked { rate: Some((rate, burst)), peak: None, mtu: 2_000, overhead: 0, cells: false };
        let mut police = Police::new(asked.built(), Nanos(0));
        let (mut passed, mut now) = (0_u64, 0_u64);
        for _ in 0..500 {
            while !police.ask(Nanos(now), 100, 100).exceeds {
                passed += 100;
            }
            // A nanosecond more for each packet, of which times are rounded down.
            let most = u128::from(now + burst + passed / 100) * u128::from(rate) / 1_000_000_000;
            prop_assert!(u128::from(passed) <= most + 1, "{passed} of {most}");
            now += step;
        }
    }
}

/// Goal: what takes all that a bucket holds conforms, and a nanosecond's worth more does not. Method: packets
/// of a millisecond each; a bucket of two of them, and one of the peak rate of one.
#[test]
fn the_last_byte_conforms() {
    let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
    let (conform, exceed) = (ControlAction::Pass, ControlAction::Drop);
    let burst = PoliceRate { rate: rate(1_000_000), burst: Nanos(2_000_000) };
    let of_rate = PoliceSettings { rate: Some(burst), peak: None, mtu: 1_000, conform, exceed };
    let of_peak = PoliceSettings { peak: Some(rate(1_000_000)), ..of_rate };
    let exceeding = |settings, moments: [u64; 4]| {
        let mut police = Police::new(settings, Nanos(0));
        moments.map(|now| police.ask(Nanos(now), 1_000, 1_000).exceeds)
    };
    assert_eq!(exceeding(of_rate, [0, 0, 999_999, 1_000_000]), [false, false, true, false]);
    assert_eq!(exceeding(of_peak, [0, 999_999, 1_000_000, 1_999_999]), [false, true, false, true]);
}

/// Goal: of a pause no more than the burst fills the peak rate's bucket. Method: a peak rate whose bucket
/// takes longer to fill than the rate's, emptied, and a pause that is longer than both.
#[test]
fn a_pause_fills_no_more_than_the_burst() {
    let rate = Rate::bytes_per_second(10_000_000).map(|rate| PoliceRate { rate, burst: Nanos(1_000_000) });
    let (peak, conform, exceed) =
        (Rate::bytes_per_second(1_000_000), ControlAction::Pass, ControlAction::Drop);
    let mut police = Police::new(PoliceSettings { rate, peak, mtu: 1500, conform, exceed }, Nanos(0));
    let mut exceeds = |now, bytes: u32| police.ask(Nanos(now), bytes, bytes).exceeds;
    assert!(!exceeds(0, 1500) && exceeds(0, 1), "its bucket is empty");
    assert!(exceeds(10_000_000, 1001) && !exceeds(10_000_000, 1000), "1 ms of the 10");
}

/// Goal: extremes neither panic nor wrap. Method: the largest and the smallest of everything.
#[test]
fn extremes() {
    let rate = |bytes| Rate::bytes_per_second(bytes).expect("not 0");
    let settings = PoliceSettings {
        rate: Some(PoliceRate { rate: rate(1), burst: Nanos(u64::MAX) }),
        peak: Some(rate(1)),
        mtu: u32::MAX,
        conform: ControlAction::Pass,
        exceed: ControlAction::Drop,
    };
    let mut police = Police::new(settings, Nanos(u64::MAX - 1));
    assert!(!police.ask(Nanos(u64::MAX), u32::MAX, u32::MAX).exceeds);
    assert!(!police.ask(Nanos(u64::MAX), 0, 0).exceeds);
    // Time does not go back; if it did, nothing would have passed.
    assert!(police.ask(Nanos(0), u32::MAX, u32::MAX).exceeds);
    assert_eq!(police.settings(), &settings);
}

/// Goal: as Linux 6.12 does it. Method: 40 echo replies, which were asked for 10 ms apart in a guest, policed
/// where they came in at 12,500 bytes per second with a burst of 3,000: the numbers of the seven that passed.
/// They were counted as 1,028 bytes each, without the header of Ethernet. A `police` of only an `mtu` of
/// 1,028 let none of them pass, as that counts the header.
#[test]
fn as_in_the_kernel() {
    let rate = PoliceRate { rate: Rate::bytes_per_second(12_500).expect("not 0"), burst: Nanos(240_000_000) };
    let (conform, exceed) = (ControlAction::Pass, ControlAction::Drop);
    let settings = PoliceSettings { rate: Some(rate), peak: None, mtu: 2_040, conform, exceed };
    let mut police = Police::new(settings, Nanos(0));
    // Between two of them somewhat more than 10 ms passed.
    let passed: Vec<u64> =
        (0..40).filter(|at| !police.ask(Nanos(at * 10_120_000), 1_028, 1_042).exceeds).collect();
    assert_eq!(passed, [0, 1, 2, 9, 17, 26, 34]);
    let of_link = PoliceSettings { rate: None, peak: None, mtu: 1_028, conform, exceed };
    assert!(Police::new(of_link, Nanos(0)).ask(Nanos(0), 1_028, 1_042).exceeds);
}
