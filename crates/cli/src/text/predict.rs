//! Predictions and measurements side by side, as text.

use super::page::{Page, in_lines};
use crate::terminal::Style;
use quietcore_lab::{PredictReport, maybe, number};
use quietcore_sim::Cost;

pub(crate) fn predictions(page: &mut Page, report: &PredictReport) {
    page.styled_line(Style::Heading, "quietcore lab predict (simulated first, then measured)");
    for (name, value) in report.host.facts() {
        page.item(2, name, 16, &value);
    }
    page.heading("Costs, in ns, frozen before anything was predicted");
    for cost in Cost::ALL {
        let Some(value) = report.costs.get(cost) else { continue };
        let spread = value.spread.iter().map(|ns| format!("{ns:.1}")).collect::<Vec<_>>().join(" to ");
        page.line(&format!("  {:<16} {:>10.1}   {spread}", cost.name(), value.ns));
    }
    page.item(2, "costs", 16, &in_lines(&report.costs.origins()));
    page.heading(&format!(
        "Predicted, and measured for {} ms per round (within {:.0} %, or why not)",
        report.span_ms, report.tolerated_percent
    ));
    page.line(&format!(
        "  {:<33} {:>10} {:>16} {:>10} {:>8}  {}",
        "", "simulated", "costs 1/2, 2", "measured", "off", "unit"
    ));
    let mut last = "";
    for one in &report.predictions {
        if one.question != std::mem::replace(&mut last, one.question) {
            page.line(&format!("  {}", one.question));
        }
        let range = format!("{}, {}", number(one.halved), number(one.doubled));
        let live = one.measured.as_ref();
        let off = live.and_then(|live| live.off_percent);
        let off = off.map_or_else(|| "-".to_owned(), |off| format!("{off:+.1}%"));
        let line = format!(
            "    {:<31} {:>10} {range:>16} {:>10} {off:>8}  {}",
            one.what,
            number(one.predicted),
            maybe(live.map(|live| live.median)),
            one.unit
        );
        let Some(live) = live else {
            page.line(&line);
            continue;
        };
        page.styled_line(if live.within { Style::Good } else { Style::Warning }, &line);
        if let Some(reason) = &live.reason {
            page.item(6, "", 0, reason);
        }
    }
    let measured: Vec<bool> =
        report.predictions.iter().filter_map(|one| Some(one.measured.as_ref()?.within)).collect();
    let within = measured.iter().filter(|within| **within).count();
    page.blank();
    page.line(&format!("{within} of {} predictions are within the tolerance", measured.len()));
    if !report.complete {
        page.line("Interrupted: this is what was measured until then.");
    }
}
