//! Carries out lines of `tc` on an instance's devices, and answers with text.

use super::conversation::Reply;
use crate::control::Control;
use quietcore_qdisc::IpPacket;
use quietcore_qdisc::tc::{Command, JsonLayout, parse};

/// Carries out a line as an instance does: what it answers is text, or JSON if the line asks for that (`-j`).
///
/// # Errors
/// Why it was refused, in words.
pub fn execute(control: &Control<IpPacket>, line: &str) -> Reply {
    let command = parse(line).map_err(|error| error.to_string())?;
    let answer = control.execute(&command).map_err(|error| error.to_string())?;
    match &command {
        Command::Show(show) if show.json => {
            Ok(answer.json(if show.style.pretty { JsonLayout::Spread } else { JsonLayout::Line }))
        }
        _ => Ok(answer.to_string()),
    }
}
