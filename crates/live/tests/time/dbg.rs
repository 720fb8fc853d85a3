//! d
use crate::scene::{Dice, MILLI, Stopped, Woken, poll};
use quietcore_live::time::{Instant, Precision, sleep_until};
use quietcore_live::Nanos;
fn ms(i: Instant, b: Instant) -> i64 { (Nanos::from(i).0 as i64 - Nanos::from(b).0 as i64) / 1_000_000 }
/// d
#[test]
fn dbg_trace() {
    let seed = 4;
    let scene = Stopped::new();
    let base = Instant::now();
    println!("base tick {}", Nanos::from(base).0 / 1_000_000);
    let mut dice = Dice::new(seed);
    let rd = |dice: &mut Dice| Instant::now() - MILLI * 10 + MILLI * dice.below(100) as u32;
    let mut naps: Vec<_> = (0..20).map(|n: usize| { let d = rd(&mut dice); (Box::pin(sleep_until(d).with_precision([Precision::Tick, Precision::Exact][n % 2])), Woken::new()) }).collect();
    for step in 0..150 {
        if dice.below(4) == 0 {
            let a = dice.below(12) as u32;
            scene.advance(MILLI * a);
            println!("{step} advance to {}", ms(Instant::now(), base));
            if step == 149 {
                for k in 0..4 {
                    for (i, (nap, (woken, _))) in naps.iter().enumerate() { println!("{k} nap {i} deadline {} elapsed {} woken {}", ms(nap.deadline(), base), nap.is_elapsed(), woken.count()); }
                    println!("{:?}", scene.machine.metrics().cpus.iter().map(|c| c.bases).collect::<Vec<_>>());
                    scene.advance(MILLI * u32::from(k > 1));
                }
            }
        }
        let c = dice.below(20) as usize;
        let (nap, (_, w)) = &mut naps[c];
        if dice.below(2) == 0 {
            let r = poll(nap.as_mut(), w);
            println!("{step} {c} poll {:?} deadline {}", r.is_ready(), ms(nap.deadline(), base));
        } else {
            let d = rd(&mut dice);
            println!("{step} {c} reset {} -> {}", ms(nap.deadline(), base), ms(d, base));
            nap.as_mut().reset(d);
        }
    }
}
/// d
#[test]
fn dbg_min() {
    for variant in 0..64u32 {
    let scene = Stopped::new();
    let base = Instant::now();
    let (woken, w) = Woken::new();
    let mut nap = Box::pin(sleep_until(base + MILLI * 121));
    let mut other = Box::pin(sleep_until(base + MILLI * 186));
    let mut third = Box::pin(sleep_until(base + MILLI * 195).with_precision(Precision::Exact));
    let go = |t: u32| scene.advance_to(base + MILLI * t);
    go(63);
    let _ = poll(nap.as_mut(), &w);
    if variant & 1 != 0 { let _ = poll(other.as_mut(), &w); }
    if variant & 2 != 0 { let _ = poll(third.as_mut(), &w); }
    if variant & 4 != 0 { go(80); go(89);} go(97);
    nap.as_mut().reset(base + MILLI * 184);
    if variant & 8 != 0 { for t in [102,105,107,114,114,115,117,121,131,140,150] { go(t); } }
    if variant & 16 != 0 { go(159); go(170); }
    if variant & 32 != 0 { go(174); }
    go(184);
    if woken.count() == 0 { println!("variant {variant:b} base {}", Nanos::from(base).0 / 1000000 % 64); }
    }
}
