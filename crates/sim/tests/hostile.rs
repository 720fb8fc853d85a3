//! Scenarios that are wrong, or meant to harm: refused before anything is run, with file, line, key and what
//! is allowed.

use quietcore_sim::Scenario;

fn refuse(text: &str) -> String {
    let parsed = Scenario::parse("s.toml".as_ref(), text, &|_| Err(std::io::ErrorKind::NotFound.into()));
    parsed.expect_err(&text.chars().take(300).collect::<String>()).to_string()
}

const HEAD: &str = "duration = \"10ms\"\n[machine]\ncpus = 4\n";

/// Goal: a mistake is named by line and key, and what would be right is said. Method: one mistake of each
/// kind.
#[test]
fn a_mistake_is_named_by_line_and_key() {
    for (text, begins, says) in [
        ("duration = \"10ms\"\n", "s.toml", "missing field `machine`"),
        ("duration = \"10\"\n[machine]\ncpus = 4\n", "s.toml:1: duration: ", "as 100ms"),
        ("duration = \"0s\"\n[machine]\ncpus = 4\n", "s.toml:1: duration: ", "allowed are 1 ms to 3600 s"),
        ("duration = \"10ms\"\n[machine]\ncpus = 0\n", "s.toml:3: cpus: ", "allowed are 1 to 8192"),
    ] {
        let error = refuse(text);
        assert!(error.starts_with(begins) && error.contains(says), "{text}: {error}");
    }
    for (rest, begins, says) in [
        ("colour = 1\n", "s.toml:4: colour: ", "expected one of `cpus`"),
        ("exclusion = \"v3\"\n", "s.toml:4: exclusion: ", "`merged`"),
        ("isolated = \"0-3\"\n", "s.toml:4: isolated: ", "at least one"),
        ("isolated = \"3-9\"\n", "s.toml:4: isolated: ", "CPU 4 does not"),
        ("tick = \"1us\"\n", "s.toml:4: tick: ", "100 us to 100 ms"),
        ("[[machine.idle_state]]\nname = \"c1\"\n", "s.toml:4", "missing field `residency`"),
        ("[[machine.idle_state]]\nname = \"c 1\"\nresidency = \"1us\"\n", "s.toml:5: name: ", "letters"),
        ("[[machine.idle_state]]\nname = \"\"\nresidency = \"1us\"\n", "s.toml:5: name: ", "1 to 16"),
        ("[[machine.idle_state]]\nname = \"c1\"\nresidency = \"2s\"\n", "s.toml:6: residency: ", "to 1 s"),
        (
            "[[machine.idle_state]]\nname = \"c1\"\nresidency = \"1us\"\nexit = \"2s\"\n",
            "s.toml:7: exit: ",
            "to 1 s",
        ),
        (
            "[[machine.idle_state]]\nname = \"c1\"\nresidency = \"1us\"\n\
             [[machine.idle_state]]\nname = \"c1\"\nresidency = \"2us\"\n",
            "s.toml:8: name: ",
            "two idle states",
        ),
        (
            "[[machine.idle_state]]\nname = \"c1\"\nresidency = \"1us\"\n\
             [[machine.idle_state]]\nname = \"c2\"\nresidency = \"1us\"\n",
            "s.toml:9: residency: ",
            "the deepest one comes last",
        ),
        ("[[load.busy]]\ncpus = \"7\"\n", "s.toml:5: cpus: ", "CPU 7 does not exist"),
        ("[[load.busy]]\ncpus = \"isolated\"\n", "s.toml:5: cpus: ", "no CPU is meant"),
        ("[[load.busy]]\ncpus = \"all\"\nevery = 0\n", "s.toml:6: every: ", "at least 1"),
        ("[[load.lazy]]\ncpus = \"all\"\n", "s.toml:4: [[load.lazy]]: ", "expected one of `periodic`"),
        (
            "[[load.pairs]]\ncpus = \"all\"\nrequest = \"1ms\"\nservice = \"1ms\"\ntimeout = \"1s\"\n",
            "s.toml:4",
            "count",
        ),
        ("[fault.panics]\npercent = 101\n", "s.toml:5: percent: ", "0 to 100"),
        (
            "[[fault.stall]]\ncpus = \"1\"\nblocked = \"9ms\"\nevery = \"9ms\"\n",
            "s.toml:6: blocked: ",
            "out of range",
        ),
        ("[cost]\narm = { ns = -1, source = \"x\" }\n", "s.toml:5: arm: ", "between 0"),
        ("[expect]\noff = [\"foreign = 0\"]\n", "s.toml:5: off", "one of only"),
        ("[expect]\nevery = [\"foreigns = 0\"]\n", "s.toml:5: every: ", "known are arms"),
        ("[variants]\npolicy = []\n", "s.toml:5: policy: ", "no variant"),
    ] {
        let error = refuse(&format!("{HEAD}{rest}"));
        assert!(error.starts_with(begins) && error.contains(says), "{rest}: {error}");
    }
    assert!(refuse(&format!("costs = \"../../etc/passwd\"\n{HEAD}")).contains("beside the scenario"));
    assert!(refuse(&format!("costs = \"none.toml\"\n{HEAD}")).starts_with("s.toml:1: costs: cannot read"));
}

/// Goal: no file makes it panic or take much memory. Method: sizes beyond all bounds, deep nesting, endless
/// variants.
#[test]
fn sizes_are_bounded() {
    let load = |count: u64| format!("{HEAD}[[load.busy]]\ncpus = \"all\"\ncount = {count}\n");
    assert!(refuse(&load(1_000_001)).contains("out of range"));
    assert!(refuse(&load(300_000)).contains("more than 1000000 timers and tasks"));
    assert!(refuse(&load(u64::MAX / 2)).contains("out of range"));
    let many = (0..300).map(|number| number.to_string()).collect::<Vec<_>>().join(",");
    assert!(refuse(&format!("{HEAD}[variants]\npairs = [{many}]\n")).contains("more than 256"));
    assert!(refuse(&format!("a = {}1{}\n{HEAD}", "[".repeat(100_000), "]".repeat(100_000))).len() < 1000);
    assert!(refuse(&format!("about = \"{}\"\n{HEAD}", "x".repeat(1 << 20))).contains("longer than"));
    let expect = format!("{HEAD}[expect]\nevery = [{}]\n", "\"arms = 0\",".repeat(5000));
    assert!(refuse(&expect).contains("more than 4096"));
    let words = format!("{HEAD}[expect]\nevery = [\"arms = {}0\"]\n", "0 + ".repeat(100));
    assert!(refuse(&words).contains("words"));
    let states = |count: u64| {
        let state = |at| format!("[[machine.idle_state]]\nname = \"c{at}\"\nresidency = \"{at}us\"\n");
        format!("{HEAD}{}", (0..count).map(state).collect::<String>())
    };
    assert!(refuse(&states(11)).contains("more than 10 idle states"));
    assert!(Scenario::parse("s.toml".as_ref(), &states(10), &|_| unreachable!()).is_ok());
    assert!(refuse("\u{0}\u{ffff}[[[").starts_with("s.toml"));
}

/// Goal: no cut of a good scenario makes it panic. Method: each prefix of one, and each with one byte
/// changed.
#[test]
fn damaged_scenarios_are_survived() {
    let text = include_str!("../../../scenarios/isolate-flips.toml");
    let mut refused = 0;
    for cut in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
        let damaged = format!(
            "{}~{}",
            &text[..cut],
            &text[cut + text[cut..].chars().next().map_or(0, char::len_utf8)..]
        );
        for wrong in [&text[..cut], damaged.as_str()] {
            let parsed = Scenario::parse("s.toml".as_ref(), wrong, &|_| {
                Ok(include_str!("../../../scenarios/costs.toml").into())
            });
            refused += usize::from(parsed.is_err());
        }
    }
    assert!(refused > text.len() / 2, "only {refused} of {} were refused", 2 * text.len());
}
