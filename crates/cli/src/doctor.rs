//! `quietcore doctor`: what a host's configuration does to its isolated CPUs, without tracing.

use crate::args::DoctorArgs;
use crate::collect::collect;
use crate::error::CliError;
use crate::host;
use crate::outcome::CommandOutcome;
use crate::output;
use crate::text::{self, Page};
use quietcore_explain::{Examination, Facts, Finding, HostSummary, Severity, examine};
use quietcore_trace::{visible, visible_path};
use serde::Serialize;
use std::path::Path;

/// The JSON of `doctor --json`, schema 3.
#[derive(Serialize)]
pub(crate) struct Doctor {
    schema: u32,
    root: String,
    summary: HostSummary,
    pub(crate) findings: Vec<Finding>,
    unreadable: Vec<Unreadable>,
    #[serde(skip)]
    rows: Vec<(&'static str, String)>,
}

/// A file that exists and could not be used.
#[derive(Serialize)]
struct Unreadable {
    path: String,
    why: String,
}

pub(crate) fn run(args: &DoctorArgs) -> Result<CommandOutcome, CliError> {
    if !args.root.is_dir() {
        return Err(CliError::Usage(format!(
            "--root {}: not a directory; name one that holds a copy of a host's proc and sys",
            visible_path(&args.root)
        )));
    }
    if !["proc/sys/kernel", "proc/cmdline", "sys/devices/system/cpu"]
        .iter()
        .any(|part| args.root.join(part).exists())
    {
        return Err(CliError::Usage(format!(
            "--root {}: there is neither proc/sys/kernel, proc/cmdline nor sys/devices/system/cpu below it; name \
             the directory that holds a host's proc and sys",
            visible_path(&args.root)
        )));
    }
    if let Some(archive) = &args.collect {
        collect(&args.root, archive)?;
        return Ok(CommandOutcome::Fine);
    }
    let doctor = look_at(&args.root);
    if args.json {
        output::print_json(&doctor)?;
    } else {
        Page::print(|page| {
            page.line(&format!("quietcore doctor {}", visible(&doctor.root)));
            doctor.show_summary(page);
            text::findings(page, &doctor.findings);
        })?;
    }
    Ok(if doctor.warns() && !args.exit_zero { CommandOutcome::Found } else { CommandOutcome::Fine })
}

/// Reads and examines the host below `root`.
pub(crate) fn look_at(root: &Path) -> Doctor {
    let mut facts = Facts::read(root);
    if root == Path::new("/") {
        // The running kernel's clock says it, too.
        facts.hz = facts.hz.or_else(host::hz);
    }
    let Examination { host, summary, findings } = examine(&facts);
    let unreadable = facts.unreadable.into_iter().map(|(path, why)| Unreadable { path, why }).collect();
    Doctor { schema: 3, root: root.display().to_string(), summary: host, rows: summary, findings, unreadable }
}

impl Doctor {
    /// Whether a finding is of severity warning or above.
    pub(crate) fn warns(&self) -> bool {
        self.findings.iter().any(|finding| finding.severity >= Severity::Warning)
    }

    pub(crate) fn show_summary(&self, page: &mut Page) {
        let width = self.rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        for (name, value) in &self.rows {
            page.item(2, name, width + 1, &visible(value));
        }
        for file in &self.unreadable {
            page.item(2, "unreadable", width + 1, &visible(&format!("{}: {}", file.path, file.why)));
        }
    }
}
