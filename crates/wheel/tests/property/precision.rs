//! How late timers are: the table of the documentation, and the bound of each precision.

use quietcore_wheel::{Precision, Shape, Slot, Tick, Timers};

type Kernel = Shape<9, 64>;

/// Goal: a coarse timer is late by 1 tick to one granule. Method: both edges of every level, from clocks
/// that are on an edge, just before and just after.
#[test]
fn a_coarse_timer_is_at_most_one_granule_late() {
    for clock in [Tick(0), Tick(7), Tick(8), Tick(u64::MAX - 3), Tick((1 << 24) - 1)] {
        for level in 0..9 {
            let end = if level == 8 { Kernel::CUTOFF } else { Kernel::level_start(level + 1) };
            for delay in [Kernel::level_start(level), end - 1] {
                let place = Kernel::place(clock, clock.plus(delay), Precision::Coarse);
                let late = place.expiry.since(clock.plus(delay));
                assert_eq!(place.bucket as usize / 64, level, "delay {delay} from {clock:?}");
                assert!((1..=8_i64.pow(level as u32)).contains(&late), "{delay} from {clock:?}: {late} late");
            }
        }
    }
}

/// Goal: at most 8/63 of the delay. Method: delays of all sizes.
#[test]
fn a_coarse_timer_is_late_by_an_eighth_at_most() {
    let mut delay = 63;
    while delay < Kernel::CUTOFF {
        for clock in [Tick(0), Tick(1), Tick(12_345)] {
            let expires = clock.plus(delay);
            let late = Kernel::place(clock, expires, Precision::Coarse).expiry.since(expires);
            assert!(late as u64 * 63 <= delay * 8, "delay {delay}: {late} late");
        }
        delay += 1 + delay / 97;
    }
}

/// Goal: the numbers of the documentation. Method: the table of the kernel's shape, at 1 ms and 10 ms.
#[test]
fn the_table_of_the_documentation() {
    let starts = [0, 63, 504, 4032, 32_256, 258_048, 2_064_384, 16_515_072, 132_120_576];
    for (level, start) in starts.into_iter().enumerate() {
        assert_eq!(Kernel::level_start(level), start);
        assert_eq!(Kernel::granularity(level), 8_u64.pow(level as u32));
    }
    assert_eq!(Kernel::CUTOFF, 1_056_964_608);
    assert_eq!(Kernel::LONGEST, 62 << 24);
    assert_eq!(Shape::<8, 64>::CUTOFF, 132_120_576);
}

/// Goal: tick precision is late by exactly one tick, over all levels and beyond the capacity, and moves at
/// most once per level. Method: one timer at a time; a move is a wake-up that hands nothing out.
#[test]
fn a_timer_of_tick_precision_is_one_tick_late() {
    let mut delay = 0;
    while delay < 3 * Kernel::CUTOFF {
        let clock = Tick(u64::MAX - 1_000_003);
        let expires = clock.plus(delay);
        let mut timers = Timers::new(clock, [const { Slot::new() }; 1]);
        timers.arm_with(expires, Precision::Tick, ()).unwrap();
        let (mut moves, mut now) = (0, clock);
        loop {
            now = timers.next_expiry().unwrap_or(now);
            if timers.next_expired(now).is_some() {
                break;
            }
            moves += 1;
        }
        assert_eq!(now, expires.plus(1), "delay {delay}");
        assert!(moves <= 8 + delay / Kernel::LONGEST, "delay {delay}: {moves} moves");
        delay += 1 + delay / 61;
    }
}

/// Goal: a clipped coarse timer is the one that runs early, at the longest delay. Method: far beyond.
#[test]
fn a_coarse_timer_beyond_the_capacity_is_clipped() {
    let mut timers = Timers::new(Tick(0), [const { Slot::new() }; 1]);
    timers.arm(Tick(1 << 40), ()).unwrap();
    let due = timers.next_expiry().unwrap();
    assert_eq!(due, Tick(Kernel::LONGEST + Kernel::granularity(8)));
    assert_eq!(timers.next_expired(due).map(|expired| expired.expires), Some(Tick(1 << 40)));
}

/// Goal: nothing depends on how far an empty wheel's clock jumps. Method: the longest allowed jumps.
#[test]
fn an_empty_wheel_jumps_anywhere() {
    let mut timers = Timers::new(Tick(3), [const { Slot::new() }; 1]);
    let mut now = Tick(3);
    for _ in 0..20 {
        now = now.plus((1 << 62) - 1);
        timers.forward(now);
        assert_eq!(timers.clock(), now);
        timers.check();
        let key = timers.arm(now.plus(5), ()).unwrap();
        assert_eq!(timers.next_expiry(), Some(now.plus(6)));
        timers.cancel(key).unwrap();
        assert_eq!(timers.next_expiry(), None);
        timers.check();
    }
}

/// Goal: a cancelled timer does not hold the clock back. Method: the only timer, and the first of two.
#[test]
fn a_cancelled_bucket_does_not_hold_the_clock_back() {
    let mut timers = Timers::new(Tick(0), [const { Slot::new() }; 2]);
    let key = timers.arm(Tick(30), ()).unwrap();
    timers.cancel(key).unwrap();
    timers.forward(Tick(1_000));
    assert_eq!(timers.clock(), Tick(1_000));
    let key = timers.arm(Tick(1_030), ()).unwrap();
    timers.arm(Tick(1_050), ()).unwrap();
    timers.cancel(key).unwrap();
    timers.forward(Tick(5_000));
    assert_eq!(timers.clock(), Tick(1_051), "up to the one that is still there");
}
