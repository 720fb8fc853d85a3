//! Costs of this machine, as text.

use super::page::{Page, in_lines};
use quietcore_lab::Calibration;
use quietcore_sim::Cost;

pub(crate) fn costs(page: &mut Page, found: &Calibration) {
    page.heading("Costs of this machine, in ns: median, and smallest and largest of the repeats");
    for cost in Cost::ALL {
        let Some(value) = found.costs.get(cost) else { continue };
        let spread = value.spread.iter().map(|ns| format!("{ns:.1}")).collect::<Vec<_>>().join(" to ");
        let label = format!("{:<16} {:>9.1}", cost.name(), value.ns);
        page.item(2, &label, 27, &format!("{spread}\n{}", value.source));
    }
    page.item(2, "costs", 27, &in_lines(&found.costs.origins()));
    for sentence in &found.missing {
        page.item(2, "note", 27, sentence);
    }
}
