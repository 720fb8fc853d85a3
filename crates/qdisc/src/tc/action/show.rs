//! How `filter show` shows the actions of a filter.
//!
//! Source: iproute2 6.1 by behaviour (`crates/net/tests/tc_recorded`): its JSON has neither rates nor sizes
//! of `police`.

use super::{FilterAction, GactOptions, MirredOptions, PoliceOptions};
use crate::Statistics;
use crate::action::ControlAction;
use crate::tc::text::size_text;
use crate::tc::tick::shown_size;
use crate::tc::told::add_link_layer;
use crate::tc::{TcProperties, TcValue};
use alloc::format;
use quietcore_core::Nanos;

/// What is known of an action besides what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ActionUse {
    /// What it was told, by the line that made it.
    pub told: FilterAction,
    /// What it is called.
    pub index: u32,
    /// Filters that have it.
    pub bound: u32,
    /// How long it has been there.
    pub installed: Nanos,
    /// How long ago it was last asked, or else made.
    pub used: Nanos,
    /// How long ago it was first asked.
    pub first_used: Option<Nanos>,
    /// What it counted.
    pub statistics: Statistics,
}

/// What `tc` shows of a filter's actions; `old` of a `police` without `action`.
pub fn describe_actions(shown: &mut TcProperties, actions: &[ActionUse], old: bool) {
    if let ([action], true) = (actions, old) {
        shown.text_only("\n");
        if let FilterAction::Police(options) = &action.told {
            add_police(shown, options, action);
            shown.statistics(|shown| add_ages(shown, action));
            shown.text_only("\n");
            shown.statistics(|shown| add_old_statistics(shown, &action.statistics));
        }
        return;
    }
    if !actions.is_empty() {
        let described = (1_u32..).zip(actions).map(|(order, action)| described(order, action));
        shown.objects("actions", described.collect());
    }
}

fn described(order: u32, action: &ActionUse) -> TcProperties {
    let mut shown = TcProperties::default();
    shown.add("order", "\n\taction order {}: ", order);
    match &action.told {
        FilterAction::Gact(options) => add_gact(&mut shown, *options, action),
        FilterAction::Police(options) => add_police(&mut shown, options, action),
        FilterAction::Mirred(options) => add_mirred(&mut shown, options, action),
    }
    shown.statistics(|shown| add_statistics(shown, action));
    shown.text_only("\n");
    shown
}

fn add_control(shown: &mut TcProperties, template: &'static str, control: &'static str) {
    shown.object("control_action", |shown| shown.add("type", template, control));
}

fn add_bound(shown: &mut TcProperties, reference: &'static str, bound: &'static str, action: &ActionUse) {
    shown.add("ref", reference, action.bound);
    shown.add("bind", bound, action.bound);
}

fn add_ages(shown: &mut TcProperties, action: &ActionUse) {
    const SECOND: u64 = 1_000_000_000;
    /// The kernel tells ages in hundredths of a second, and `tc` of none nothing.
    const HUNDREDTH: u64 = SECOND / 100;
    shown.add("installed", " installed {} sec", action.installed.0 / SECOND);
    shown.add("last_used", " used {} sec", action.used.0 / SECOND);
    if let Some(first) = action.first_used.filter(|first| first.0 >= HUNDREDTH) {
        shown.add("first_used", " firstused {} sec", first.0 / SECOND);
    }
}

fn add_statistics(shown: &mut TcProperties, action: &ActionUse) {
    add_ages(shown, action);
    let Statistics { sent_bytes, sent_packets, dropped, overlimits, requeues, .. } = action.statistics;
    shown.text_only("\n\tAction statistics:\n\t");
    // What an action drops or lets pass is never queued.
    shown.object("stats", |shown| {
        shown.add("bytes", "Sent {} bytes", sent_bytes);
        shown.add("packets", " {} pkt", sent_packets);
        shown.add("drops", " (dropped {},", dropped);
        shown.add("overlimits", " overlimits {}", overlimits);
        shown.add("requeues", " requeues {}) ", requeues);
        shown.text_only("\n\tbacklog 0b 0p requeues 0");
        shown.add_json("backlog", 0_u32);
        shown.add_json("qlen", 0_u32);
    });
}

fn add_old_statistics(shown: &mut TcProperties, statistics: &Statistics) {
    let Statistics { sent_bytes, sent_packets, dropped, overlimits, .. } = *statistics;
    shown.object("stats", |shown| {
        shown.add("bytes", "\n Sent {} bytes", sent_bytes);
        shown.add("packets", " {} pkts", sent_packets);
        shown.add("drops", " (dropped {},", dropped);
        shown.add("overlimits", " overlimits {}) ", overlimits);
    });
}

fn add_gact(shown: &mut TcProperties, options: GactOptions, action: &ActionUse) {
    shown.add("kind", "{} ", "gact");
    add_control(shown, "action {}", options.control.name());
    shown.object("prob", |shown| {
        let (name, control, one_in) = match options.random {
            Some(random) => (random.choice.name(), random.control, random.one_in.max(1)),
            None => ("none", ControlAction::Pass, 0),
        };
        shown.add("random_type", "\n\t random type {}", name);
        add_control(shown, " {}", control.name());
        shown.add("val", " val {}", one_in);
    });
    shown.add("index", "\n\t index {}", action.index);
    add_bound(shown, " ref {}", " bind {}", action);
}

fn add_police(shown: &mut TcProperties, options: &PoliceOptions, action: &ActionUse) {
    shown.add_json("kind", "police");
    let index =
        TcValue::new(format!("{:#x}", action.index), crate::tc::TcJson::Unsigned(action.index.into()));
    shown.add("index", " police {} ", index);
    // It was made of these options.
    let Ok(settings) = options.settings() else { return };
    let rate = settings.rate.map_or(0, |of| of.rate.get());
    let burst = settings.rate.map_or(0, |of| shown_size(of.rate, of.burst));
    shown.add_text("rate {} ", TcValue::byte_rate(rate));
    shown.add_text("burst {} ", size_text(burst));
    shown.add_text("mtu {} ", size_text(settings.mtu.into()));
    if let Some(peak) = settings.peak {
        shown.add_text("peakrate {} ", TcValue::byte_rate(peak.get()));
    }
    add_control(shown, "action {}", settings.exceed.name());
    if settings.conform != ControlAction::Pass {
        add_control(shown, "/{}", settings.conform.name());
    }
    shown.add("overhead", " overhead {}b ", options.overhead.unwrap_or(0));
    match settings.rate {
        Some(_) => add_link_layer(shown, options.linklayer.unwrap_or_default()),
        None => shown.details(|shown| shown.add("linklayer", "linklayer {} ", "unspec")),
    }
    shown.text_only("\n\t");
    add_bound(shown, "ref {} ", "bind {} ", action);
}

fn add_mirred(shown: &mut TcProperties, options: &MirredOptions, action: &ActionUse) {
    let MirredOptions { kind, direction, device, .. } = options;
    let names = format!("({} {} to device {device})", capital(direction.name()), capital(kind.name()));
    shown.add("kind", "{} ", "mirred");
    shown.text_only(names);
    shown.add_json("mirred_action", kind.name());
    shown.add_json("direction", direction.name());
    shown.add_json("to_dev", device.clone());
    add_control(shown, " {}", options.control());
    shown.add("index", "\n\tindex {}", action.index);
    add_bound(shown, " ref {}", " bind {}", action);
}

fn capital(word: &str) -> alloc::string::String {
    let mut letters = word.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
