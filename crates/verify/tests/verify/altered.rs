//! Recordings of real kernels with one number changed: each change is found at its line, as the first.

use crate::recordings::text_of;
use crate::trace::{Random, verify};
use std::collections::BTreeSet;

/// The value of `key` in `line`, and where it stands.
fn value(line: &str, key: &str) -> Option<(usize, usize, u64)> {
    let begin = line.find(&format!(" {key}="))? + key.len() + 2;
    let end = begin + line[begin..].find(' ').unwrap_or(line.len() - begin);
    Some((begin, end, line[begin..end].parse().ok()?))
}

/// Lines (from 0) that hold a number to change. A timer that was never started has no known bucket, so the
/// `baseclk` of its expiry can only be checked for being due.
fn candidates(lines: &[&str]) -> [Vec<usize>; 2] {
    let mut started = BTreeSet::new();
    let [mut starts, mut expiries] = [Vec::new(), Vec::new()];
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.starts_with('#')) {
        let timer = line.split("timer=").nth(1).and_then(|rest| rest.split(' ').next());
        if line.contains(": timer_start: ") {
            started.extend(timer);
            starts.push(number);
        } else if line.contains(": timer_expire_entry: ")
            && timer.is_some_and(|timer| started.contains(timer))
        {
            expiries.push(number);
        }
    }
    [starts, expiries]
}

/// Goal: a wrong number anywhere is reported where it is. Method: 8 copies of each of 6 recordings, a
/// number of a random line moved by one, by a bucket, by a level or by a granule.
#[test]
fn one_altered_number_is_found_at_its_line() {
    for (seed, name) in [
        "g61-c16-iso",
        "g612-c4-levels",
        "g612-c12-nohzfull",
        "g612-c16n2-hotplug",
        "g72-c18n2-isol",
        "h618-c2-detail",
    ]
    .into_iter()
    .enumerate()
    {
        let text = text_of(name);
        let lines: Vec<&str> = text.lines().collect();
        let [starts, expiries] = candidates(&lines);
        let mut random = Random(0x9e37_79b9_7f4a_7c15 + seed as u64);
        for copy in 0..8 {
            let key = ["idx", "bucket_expiry", "baseclk"][copy % 3];
            let among = if key == "baseclk" { &expiries } else { &starts };
            let number = among[random.below(among.len())];
            let key = if key == "bucket_expiry" && value(lines[number], key).is_none() { "idx" } else { key };
            let (begin, end, old) = value(lines[number], key).expect("the line has the number");
            let granule = value(lines[number], "idx").map_or(64, |(_, _, bucket)| 8 << (3 * (bucket / 64)));
            let steps = [1, 8, 64, granule];
            let step = steps[random.below(steps.len())];
            let new = if random.below(2) == 0 || old < step { old + step } else { old - step };
            let line = format!("{}{new}{}", &lines[number][..begin], &lines[number][end..]);
            let mut altered = lines.clone();
            altered[number] = &line;
            let case = format!("{name} line {}: {key} {old} -> {new}", number + 1);
            let found = verify(&(altered.join("\n") + "\n")).first_mismatch;
            let found = found.unwrap_or_else(|| panic!("not found: {case}"));
            assert_eq!(found.line, number as u64 + 1, "{case}: {found:?}");
        }
    }
}
