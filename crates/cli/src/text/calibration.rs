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
        page.item(2, &label, 27, format!("{spread}\n{}", value.source).trim_start());
    }
    page.item(2, "costs", 27, &in_lines(&found.costs.origins()));
    for sentence in &found.missing {
        page.item(2, "note", 27, sentence);
    }
}

#[cfg(test)]
mod tests {
    use crate::text::Page;
    use quietcore_lab::Calibration;
    use quietcore_sim::CostTable;

    /// Goal: each cost with its spread and how it was measured, whose costs they are, and what is missing.
    /// Method: a snapshot of two costs from different origins.
    #[test]
    fn text_of_fixed_costs() {
        let text = "[cost.arm]\nns = 37.64\nspread = [36.5, 41.25]\nsource = \"calibrate: arming\"\n\
                    [cost.kick]\nns = 12433.0\nsource = \"a paper\"\n";
        let costs = CostTable::parse("costs.toml".as_ref(), text).expect("costs");
        let missing = vec!["One CPU only: no kicks.".to_owned(), "No clock.".to_owned()];
        let mut page = Page::plain();
        super::costs(&mut page, &Calibration { costs, missing });
        insta::assert_snapshot!("costs", page.into_text());
    }
}
