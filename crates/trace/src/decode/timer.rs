//! `timer:*`: the wheel's timers, hrtimers, the tick, interval timers.
//!
//! Source: Linux v6.1 to v7.2 include/trace/events/timer.h (field names and order).

use crate::event::{Event, HrtimerStart, TimerStart};
use crate::field::{Fields, Malformed};
use quietcore_core::Nanos;

/// `timer_<name>`.
#[inline(never)]
pub(super) fn wheel_event<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    Ok(match name {
        b"start" => timer_start(fields)?,
        b"cancel" => Event::TimerCancel { timer: fields.pointer("timer=")? },
        b"expire_entry" => Event::TimerExpireEntry {
            timer: fields.pointer("timer=")?,
            function: fields.function("function=")?,
            now: fields.number("now=")?,
            baseclk: fields.number("baseclk=").ok(),
        },
        b"expire_exit" => Event::TimerExpireExit { timer: fields.pointer("timer=")? },
        b"init" => Event::TimerInit { timer: fields.pointer("timer=")? },
        b"base_idle" => {
            Event::TimerBaseIdle { is_idle: fields.number("is_idle=")? != 0, cpu: fields.cpu("cpu=")? }
        }
        _ => Event::Unknown,
    })
}

#[inline(always)]
fn timer_start<'a>(fields: &mut Fields<'a>) -> Result<Event<'a>, Malformed> {
    let timer = fields.pointer("timer=")?;
    let function = fields.function("function=")?;
    let expires = fields.number("expires=")?;
    let timeout = fields.signed("[timeout=")?;
    let bucket_expiry = fields.number_if_any("bucket_expiry=")?;
    let base = fields.cpu("cpu=")?;
    let bucket = fields.number("idx=").ok();
    let flags = fields.optional("flags=").unwrap_or_default();
    Ok(Event::TimerStart(TimerStart {
        timer,
        function,
        expires,
        timeout,
        bucket_expiry,
        base,
        bucket,
        deferrable: flags.contains(&b'D'),
        pinned: flags.contains(&b'P'),
        irq_safe: flags.contains(&b'I'),
    }))
}

/// `hrtimer_<name>`.
#[inline(never)]
pub(super) fn hrtimer_event<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    Ok(match name {
        b"start" => Event::HrtimerStart(HrtimerStart {
            hrtimer: fields.pointer("hrtimer=")?,
            function: fields.function("function=")?,
            expires: Nanos(fields.signed("expires=")?.max(0).unsigned_abs()),
            softexpires: Nanos(fields.signed("softexpires=")?.max(0).unsigned_abs()),
            pinned: fields.optional("mode=").map(|mode| memchr::memmem::find(mode, b"PINNED").is_some()),
        }),
        b"cancel" => Event::HrtimerCancel { hrtimer: fields.pointer("hrtimer=")? },
        b"expire_entry" => Event::HrtimerExpireEntry {
            hrtimer: fields.pointer("hrtimer=")?,
            function: fields.function("function=")?,
            now: Nanos(fields.signed("now=")?.max(0).unsigned_abs()),
        },
        b"expire_exit" => Event::HrtimerExpireExit { hrtimer: fields.pointer("hrtimer=")? },
        b"init" | b"setup" => Event::HrtimerSetup { hrtimer: fields.pointer("hrtimer=")? },
        _ => Event::Unknown,
    })
}

#[inline(never)]
pub(super) fn tick_stop<'a>(text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    Ok(Event::TickStop {
        success: fields.number("success=")? != 0,
        dependency: fields.optional("dependency=").unwrap_or_default(),
    })
}

/// `itimer_state` and `itimer_expire`.
#[inline(never)]
pub(super) fn itimer<'a>(name: &[u8], text: &'a [u8]) -> Result<Event<'a>, Malformed> {
    let fields = &mut Fields::new(text);
    let which = fields.number("which=")?;
    if name == b"itimer_state" {
        return Ok(Event::ItimerState { which });
    }
    let pid = i32::try_from(fields.signed("pid=")?).map_err(|_| Malformed::NotANumber("pid="))?;
    Ok(Event::ItimerExpire { which, pid })
}
