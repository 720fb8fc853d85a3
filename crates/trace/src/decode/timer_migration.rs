//! `timer_migration:*`: the hierarchy.
//!
//! Source: Linux v6.12 and v7.2 include/trace/events/timer_migration.h (field names and order).

use crate::event::{Event, Migration, MigrationStep};
use crate::field::{Fields, Malformed};
use quietcore_core::Nanos;

/// The largest value of the kernel's signed time: "never".
const NEVER: u64 = i64::MAX as u64;
/// The migrator's mask when there is none.
const NO_MIGRATOR: u32 = 0xff;

/// `tmigr_<name>`.
#[inline(never)]
pub(super) fn event<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let step = match name {
        b"cpu_active" => MigrationStep::Active,
        b"cpu_idle" => MigrationStep::Idle,
        b"cpu_new_timer" => MigrationStep::NewTimer,
        b"cpu_new_timer_idle" => MigrationStep::NewTimerIdle,
        b"cpu_online" => MigrationStep::Online,
        b"cpu_offline" => MigrationStep::Offline,
        b"cpu_available" => MigrationStep::Available,
        b"cpu_unavailable" => MigrationStep::Unavailable,
        b"handle_remote_cpu" => MigrationStep::HandleRemote,
        _ => return group_event(name, text),
    };
    let fields = &mut Fields::new(text);
    let (cpu, parent) = (fields.cpu("cpu=")?, fields.pointer("parent=")?);
    let next_event = match step {
        MigrationStep::Idle | MigrationStep::NewTimerIdle => optional_moment(fields, "nextevt=")?,
        _ => None,
    };
    let wakeup = moment(fields, "wakeup=")?;
    Ok(Event::Migration(Migration::Cpu { step, cpu, parent, wakeup, next_event }))
}

#[inline(never)]
fn group_event<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    let event = match name {
        b"group_set" => Migration::GroupSet {
            group: fields.pointer("group=")?,
            level: fields.number("lvl=")?,
            node: fields.signed("numa=")?,
        },
        b"connect_cpu_parent" => Migration::ConnectCpu {
            cpu: fields.cpu("cpu=")?,
            mask: fields.mask("groupmask=")?,
            parent: fields.pointer("parent=")?,
            child_count: fields.number_if_any("num_children=")?,
        },
        b"connect_child_parent" => Migration::ConnectGroup {
            group: fields.pointer("group=")?,
            mask: fields.mask("groupmask=")?,
            parent: fields.pointer("parent=")?,
            level: fields.number("lvl=")?,
            child_count: fields.number_if_any("num_children=")?,
        },
        b"group_set_cpu_active" | b"group_set_cpu_inactive" => Migration::GroupState {
            active: name == b"group_set_cpu_active",
            group: fields.pointer("group=")?,
            level: fields.number("lvl=")?,
            node: fields.signed("numa=")?,
            active_mask: fields.mask("active=")?,
            migrator: Some(fields.mask("migrator=")?).filter(|&mask| mask != NO_MIGRATOR),
            parent: fields.pointer("parent=")?,
            child_mask: fields.mask("childmask=")?,
        },
        b"update_events" => Migration::UpdateEvents {
            child: fields.pointer("child=")?,
            group: fields.pointer("group=")?,
            level: fields.number("group_lvl=")?,
            child_active: fields.mask("child_active=")?,
            group_active: fields.mask("group_active=")?,
            next_event: moment(fields, "nextevt=")?,
            next_expiry: moment(fields, "next_expiry=")?,
            child_expiry: moment(fields, "child_evt_expiry=")?,
            child_cpu: fields.number("child_evtcpu=")?,
        },
        b"handle_remote" => {
            Migration::HandleRemote { group: fields.pointer("group=")?, level: fields.number("lvl=")? }
        }
        _ => return Ok(Event::Unknown),
    };
    Ok(Event::Migration(event))
}

/// A moment in ns, `None` for "never".
#[inline(always)]
fn moment(fields: &mut Fields<'_>, key: &'static str) -> Result<Option<Nanos>, Malformed> {
    Ok(Some(fields.number(key)?).filter(|&at| at < NEVER).map(Nanos))
}

/// The same for a field that not every text has.
#[inline(always)]
fn optional_moment(fields: &mut Fields<'_>, key: &'static str) -> Result<Option<Nanos>, Malformed> {
    Ok(fields.number_if_any(key)?.filter(|&at| at < NEVER).map(Nanos))
}
