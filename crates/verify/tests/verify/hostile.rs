//! What is cut, damaged, lost or made up: no panic, no memory, and no contradiction that is not there.

use crate::recordings::text_of;
use crate::trace::{JIFFIES, Trace, check_identities, start, verify};
use quietcore_trace::TraceReader;
use quietcore_verify::{Verification, Verify};

/// Verifies bytes that may be no trace at all.
fn verify_bytes(bytes: &[u8], pending_max: usize) -> Option<Verification> {
    let mut reader = TraceReader::new(bytes);
    reader.read_header().ok()?;
    let mut verify = Verify::new(reader.header()).with_pending_max(pending_max);
    verify.read(&mut reader, u64::MAX).ok()?;
    let verification = verify.finish(&reader);
    check_identities(&verification);
    Some(verification)
}

/// Goal: a recording that ends anywhere agrees as far as it goes. Method: cuts inside and between lines.
#[test]
fn a_cut_recording_agrees_as_far_as_it_goes() {
    for name in ["g61-c16-iso", "g612-c4-levels", "h618-c2-detail"] {
        let text = text_of(name);
        for tenth in 1..10 {
            let cut = text.len() * tenth / 10;
            let at_line = text[..cut].rfind('\n').expect("a line") + 1;
            for end in [cut, at_line, at_line + 20] {
                let verification = verify(&text[..end]);
                assert!(verification.ok, "{name}, {end} bytes: {:?}", verification.first_mismatch);
            }
        }
    }
}

/// Goal: lost and unreadable lines make no contradiction, and most starts stay exact.
/// Method: a stretch of each recording is left out, and a mark or garbage put in its place.
#[test]
fn lost_lines_are_no_contradiction() {
    for name in ["g61-c10n2-push1", "g612-c16-iso", "g612-c4-levels", "g72-c18n2-isol", "h618-c2-detail"] {
        let text = text_of(name);
        let lines: Vec<&str> = text.lines().collect();
        for (tenth, mark) in [(2, "CPU:1 [LOST 300 EVENTS]"), (5, "\u{1}garbage"), (8, "CPU:0 [LOST EVENTS]")]
        {
            let from = lines.len() * tenth / 10;
            let left = [&lines[..from], &[mark], &lines[from + 300..]].concat().join("\n");
            let verification = verify(&left);
            let first = &verification.first_mismatch;
            assert!(verification.ok, "{name} without 300 lines from {from} on: {first:?}");
            assert!(verification.exact as f64 >= 0.97 * verification.timer_starts as f64, "{name}");
            assert_eq!(verification.incomplete.len(), 1, "{name}: {:?}", verification.incomplete);
        }
    }
}

/// Goal: without one of the events the state is not known, which is said and is no contradiction.
#[test]
fn missing_events_are_no_contradiction() {
    for name in ["g61-c16-iso", "g612-c16-iso", "h618-c2-detail"] {
        for event in ["timer_cancel", "timer_expire_entry", "timer_start"] {
            let text = text_of(name);
            let kept: Vec<&str> =
                text.lines().filter(|line| !line.contains(&format!(": {event}:"))).collect();
            let verification = verify(&kept.join("\n"));
            let first = &verification.first_mismatch;
            assert!(verification.ok || event == "timer_start", "{name} without {event}: {first:?}");
            assert!(verification.not_recorded.contains(&event), "{name} without {event}");
            assert_eq!(verification.timer_starts == 0, event == "timer_start", "{name} without {event}");
        }
    }
}

/// Goal: with room for a few timers only, everything is forgotten now and then, and nothing contradicts.
#[test]
fn the_limit_on_pending_timers_holds() {
    for pending_max in [1, 4, 16] {
        let text = text_of("g612-c4-levels");
        let verification = verify_bytes(text.as_bytes(), pending_max).expect("a trace");
        assert!(verification.ok, "{pending_max}: {:?}", verification.first_mismatch);
        assert!(verification.notes.forgotten > 0, "{pending_max}");
    }
}

/// Goal: numbers at the ends of their ranges neither panic nor take memory. Method: all pairs of them as
/// expiry and timeout, in the last CPU's bases, cancelled, expired and started again.
#[test]
fn numbers_at_the_ends_of_their_ranges() {
    let ends = [0, 1, 63, JIFFIES, 1 << 62, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX];
    let mut trace = Trace::new();
    for expires in ends {
        for timeout in [i64::MIN, i64::MIN + 1, -1, 0, 1, 1 << 40, i64::MAX - 1, i64::MAX] {
            for number in ends {
                let event = format!(
                    "timer_start: timer={number:x} function=f expires={expires} [timeout={timeout}] \
                     bucket_expiry={number} cpu=8191 idx={number} flags=D|P"
                );
                trace.line(8191, "d..1.", &event);
                trace.expire(number, expires, number).cancel(number);
            }
        }
    }
    let verification = trace.verify();
    assert_eq!(verification.timer_starts, 1 + 9 * 8 * 9);
    assert!(!verification.ok);
}

/// Goal: every base of every CPU at once is a bounded amount of memory, and quick. Method: all of them.
#[test]
fn all_bases_of_all_cpus() {
    let mut trace = Trace::new();
    for cpu in 0..8192u16 {
        for (kind, flags) in ["", "P", "D"].into_iter().enumerate() {
            let timer = 1000 + u64::from(cpu) * 3 + kind as u64;
            trace.start(crate::trace::Start { cpu, flags, ..start(timer, JIFFIES + 100, JIFFIES) });
        }
    }
    let verification = trace.verify();
    assert!(verification.ok, "{:?}", verification.first_mismatch);
    assert_eq!(verification.exact, 3 * 8192 + 1);
}

/// Goal: damage never panics, and the sums hold. Method: bytes of a recording changed at random places.
#[test]
fn damage_never_panics() {
    let text = text_of("g612-c4-levels");
    let whole: Vec<u8> = text.as_bytes()[..400_000].to_vec();
    let mut seed = 1u64;
    let mut random = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) as usize
    };
    for round in 0..12 {
        let mut bytes = whole.clone();
        for _ in 0..40 << (round % 6) {
            let at = random() % bytes.len();
            bytes[at] = match random() % 3 {
                0 => b'0' + (random() % 10) as u8,
                1 => random() as u8,
                _ => b'\n',
            };
        }
        verify_bytes(&bytes, 100);
    }
    let noise: Vec<u8> = (0..100_000).map(|_| random() as u8).collect();
    assert!(verify_bytes(&noise, 100).is_none_or(|verification| verification.timer_starts == 0));
}

/// Goal: a trace without timers, and one without events, are fine and say that nothing was compared.
#[test]
fn nothing_to_compare() {
    let hrtimers = "a-1 [000] d..1. 1.5: hrtimer_cancel: hrtimer=01\n";
    for text in [hrtimers, "# tracer: nop\n"] {
        let verification = verify(text);
        assert!(verification.ok && verification.timer_starts == 0, "{text}");
        assert_eq!(
            verification.not_recorded,
            ["timer_start", "timer_cancel", "timer_expire_entry"],
            "{text}"
        );
        assert_eq!(verification.begins_at_boot, None);
    }
}
