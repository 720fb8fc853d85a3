//! Rounds of a row, and what they amount to.
//!
//! In a round each variant runs once, so that what else the machine does falls on all of them. A difference
//! is one only if no two rounds contradict it: every round of after is on the same side of every round of
//! before; and if it is larger than what the rounds of the noise floor differ by among themselves. That
//! needs no assumption about how rounds are spread, and says "no difference" rather too often.
//!
//! Invariant: nothing follows from a round without a sample: neither that a variant is better, nor that a
//! figure has the one value that it must have.

use crate::error::LabError;
use crate::plan::{
    Better, Compare, ExactCheck, RowPlan, RowVariant, ToolOutput, TrialContext, TrialFigures, VariantRole,
};
use crate::report::{
    ComparisonVerdict, ExactCheckReport, FigureComparison, FigureReport, RowReport, VariantReport, maybe,
    number,
};
use crate::slice::VariantSlices;

/// Percent of all CPUs' time: from here on what others take is worth a word.
pub(crate) const MUCH: f64 = 5.0;

/// Figures of a row, by variant and round.
#[derive(Debug)]
pub struct RowRounds {
    figures: Vec<Vec<TrialFigures>>,
    attachments: Vec<Option<ToolOutput>>,
    /// What ran where in the last round, if that was asked for.
    pub slices: Vec<VariantSlices>,
}

impl RowRounds {
    /// Runs `plan` for `rounds` rounds, or until the stop flag is set; a round that was cut short does not
    /// count. `tell` hears which round and which variant begins.
    ///
    /// # Errors
    ///
    /// The first [`LabError`] of a trial.
    pub fn measure(
        plan: &RowPlan,
        context: &TrialContext,
        rounds: u32,
        tell: &mut dyn FnMut(u32, &'static str),
    ) -> Result<Self, LabError> {
        let mut all = Self::given(vec![Vec::new(); plan.variants.len()]);
        'rounds: for round in 1..=rounds {
            let (mut this, mut slices) = (Vec::with_capacity(plan.variants.len()), Vec::new());
            for variant in plan.variants {
                tell(round, variant.name);
                if context.stop.is_set() {
                    break 'rounds;
                }
                let figures = (variant.run)(context)?;
                if context.stop.is_set() {
                    break 'rounds;
                }
                this.push((figures, context.attachment.borrow_mut().take()));
                let ran = context.slices.take();
                slices.extend(ran.map(|ran| VariantSlices {
                    row: plan.name,
                    variant: variant.name,
                    slices: ran,
                }));
            }
            all.slices = slices;
            for (at, (figures, attachment)) in this.into_iter().enumerate() {
                all.figures[at].push(figures);
                all.attachments[at] = attachment;
            }
        }
        Ok(all)
    }

    /// Figures that were measured elsewhere, by variant, round and place in the plan.
    pub fn given(figures: Vec<Vec<TrialFigures>>) -> Self {
        let attachments = vec![None; figures.len()];
        Self { figures, attachments, slices: Vec::new() }
    }

    /// Rounds that count.
    pub fn count(&self) -> u32 {
        u32::try_from(self.figures.first().map_or(0, Vec::len)).unwrap_or(u32::MAX)
    }

    /// All that follows from the rounds; what was not measured here (`simulated`) is left open. `command` is
    /// what runs the row again.
    pub fn row(&self, plan: &'static RowPlan, context: &TrialContext, command: String) -> RowReport {
        let variants: Vec<VariantReport> =
            plan.variants.iter().enumerate().map(|(at, variant)| self.measured(plan, at, variant)).collect();
        let comparisons: Vec<FigureComparison> =
            plan.compares.iter().filter_map(|compare| self.comparison(&variants, *compare)).collect();
        let exact_checks: Vec<ExactCheckReport> =
            plan.exact_checks.iter().filter_map(|check| self.held(&variants, *check)).collect();
        let mut words = words(&comparisons, &exact_checks);
        words.extend(plan.notes.iter().map(|note| (*note).to_owned()));
        RowReport {
            experiment: plan.name,
            question: plan.question,
            measured: true,
            cpus: context.lanes().to_string(),
            span_ms: u64::try_from(context.span.as_millis()).unwrap_or(u64::MAX),
            rounds: self.count(),
            others_percent: None,
            command,
            variants,
            comparisons,
            exact_checks,
            words,
            cited: plan.cited,
            simulated: None,
        }
    }

    fn measured(&self, plan: &RowPlan, at: usize, variant: &RowVariant) -> VariantReport {
        let figure = |place: usize, (name, unit): (&'static str, &'static str)| {
            let rounds: Vec<f64> =
                self.figures[at].iter().filter_map(|figures| figures.get(place).copied().flatten()).collect();
            let mut sorted = rounds.clone();
            sorted.sort_by(f64::total_cmp);
            let (smallest, largest) = (sorted.first().copied(), sorted.last().copied());
            FigureReport {
                name,
                unit,
                median: sorted.get(sorted.len() / 2).copied(),
                smallest,
                largest,
                rounds,
            }
        };
        let figures = plan.figures.iter().enumerate().map(|(place, name)| figure(place, *name)).collect();
        let RowVariant { name, what, role, .. } = *variant;
        VariantReport { name, what, role, figures, attachment: self.attachments[at].clone() }
    }

    fn comparison(&self, variants: &[VariantReport], compare: Compare) -> Option<FigureComparison> {
        let (before, after) =
            (of_role(variants, VariantRole::Before)?, of_role(variants, VariantRole::After)?);
        let (old, new) = (before.figures.get(compare.figure)?, after.figures.get(compare.figure)?);
        let floor =
            of_role(variants, VariantRole::NoiseFloor).and_then(|floor| floor.figures.get(compare.figure));
        let noise = floor.and_then(|floor| Some(floor.largest? - floor.smallest?));
        let is_measured = self.has_every_round(old) && self.has_every_round(new);
        let medians = old.median.zip(new.median).filter(|_| is_measured);
        Some(FigureComparison {
            figure: old.name,
            unit: old.unit,
            better: compare.better,
            before: before.name,
            after: after.name,
            before_median: old.median,
            after_median: new.median,
            ratio: medians.filter(|(old, _)| *old != 0.0).map(|(old, new)| new / old),
            floor: floor.and_then(|floor| floor.median),
            verdict: medians
                .and_then(|_| verdict(old, new, compare.better, noise.unwrap_or(0.0)))
                .unwrap_or(ComparisonVerdict::NotMeasured),
        })
    }

    fn held(&self, variants: &[VariantReport], check: ExactCheck) -> Option<ExactCheckReport> {
        let variant = variants.iter().find(|variant| variant.name == check.variant)?;
        let figure = variant.figures.get(check.figure)?;
        let away = |value: &f64| (value - check.value).abs();
        let is_it = |value: &f64| value.total_cmp(&check.value).is_eq();
        let farthest = figure.rounds.iter().copied().max_by(|one, other| away(one).total_cmp(&away(other)));
        let is_measured = self.has_every_round(figure);
        Some(ExactCheckReport {
            variant: variant.name,
            figure: figure.name,
            unit: figure.unit,
            value: check.value,
            found: farthest.filter(|value| is_measured || !is_it(value)),
            holds: is_measured && figure.rounds.iter().all(is_it),
        })
    }

    fn has_every_round(&self, figure: &FigureReport) -> bool {
        figure.rounds.len() == self.count() as usize && !figure.rounds.is_empty()
    }
}

/// The first variant of a role.
pub(crate) fn of_role(variants: &[VariantReport], role: VariantRole) -> Option<&VariantReport> {
    variants.iter().find(|variant| variant.role == role)
}

/// Both have a sample in every round; `noise` is what the rounds of the noise floor differ by.
fn verdict(old: &FigureReport, new: &FigureReport, better: Better, noise: f64) -> Option<ComparisonVerdict> {
    if (old.median? - new.median?).abs() <= noise {
        return Some(ComparisonVerdict::NoDifference);
    }
    let (low, high) = if old.smallest? > new.largest? {
        (new, old)
    } else if new.smallest? > old.largest? {
        (old, new)
    } else {
        return Some(ComparisonVerdict::NoDifference);
    };
    if low.rounds.len() < 2 {
        return Some(ComparisonVerdict::OneRound);
    }
    let wanted = if better == Better::Lower { low } else { high };
    Some(if std::ptr::eq(wanted, new) { ComparisonVerdict::Better } else { ComparisonVerdict::Worse })
}

fn words(comparisons: &[FigureComparison], exact_checks: &[ExactCheckReport]) -> Vec<String> {
    let mut words: Vec<String> = exact_checks.iter().map(check_in_words).collect();
    let is_measured = |one: &&FigureComparison| one.verdict != ComparisonVerdict::NotMeasured;
    let (measured, others): (Vec<&FigureComparison>, Vec<_>) = comparisons.iter().partition(is_measured);
    for some in [measured, others] {
        // Many figures of one kind: which variant is better where.
        if some.len() > 5 {
            words.extend(in_groups(&some))
        } else {
            words.extend(some.into_iter().map(in_words))
        }
    }
    words
}

impl RowReport {
    /// Says what else the machine did, and warns where that is much.
    pub(crate) fn beside(&mut self, others_percent: Option<f64>) {
        self.others_percent = others_percent;
        if let Some(percent) = others_percent.filter(|percent| *percent >= MUCH) {
            self.words.push(format!(
                "Others took {} % of all CPU time meanwhile: these figures are not those of a quiet machine.",
                number(percent)
            ));
        }
    }
}

fn check_in_words(check: &ExactCheckReport) -> String {
    let ExactCheckReport { variant, figure, unit, value, found, .. } = check;
    let value = number(*value);
    if check.holds {
        return format!("{figure}, {unit}: exactly {value} with {variant} in every round, as it must be.");
    }
    let was = found.map_or_else(|| "not measured in every round".to_owned(), number);
    format!("BROKEN: {figure}, {unit}, must be {value} with {variant}, and was {was}.")
}

fn in_words(of: &FigureComparison) -> String {
    let FigureComparison { figure, unit, before, after, .. } = of;
    let by = of.ratio.map_or_else(String::new, |ratio| format!(", {}", times(ratio)));
    let values = format!("{} against {} {unit}{by}", maybe(of.after_median), maybe(of.before_median));
    match of.verdict {
        ComparisonVerdict::Better => format!("{figure}: {after} is better than {before}, {values}."),
        ComparisonVerdict::Worse => format!("{figure}: {after} LOSES to {before}, {values}."),
        ComparisonVerdict::NoDifference => {
            format!(
                "{figure}: no difference between {after} and {before} beyond what rounds differ by anyway ({values})."
            )
        }
        ComparisonVerdict::OneRound => {
            format!("{figure}: {after} against {before}: {values}; one round says nothing of the spread.")
        }
        ComparisonVerdict::NotMeasured => {
            format!(
                "{figure}: not measured in every round with {before} and {after}, so nothing follows ({values})."
            )
        }
    }
}

fn in_groups(all: &[&FigureComparison]) -> Vec<String> {
    let mut words = Vec::new();
    for (verdict, is) in [
        (ComparisonVerdict::Better, "is better than"),
        (ComparisonVerdict::Worse, "LOSES to"),
        (ComparisonVerdict::NoDifference, "shows no difference beyond what rounds differ by anyway from"),
        (ComparisonVerdict::OneRound, "has one round only, which says nothing of the spread, against"),
        (ComparisonVerdict::NotMeasured, "was not measured in every round beside"),
    ] {
        let those: Vec<&&FigureComparison> = all.iter().filter(|one| one.verdict == verdict).collect();
        let Some(first) = those.first() else { continue };
        let list: Vec<String> = those
            .iter()
            .map(|one| {
                let percent = one.ratio.map(|ratio| format!(" ({:+.1} %)", (ratio - 1.0) * 100.0));
                format!("{}{}", one.figure, percent.unwrap_or_default())
            })
            .collect();
        words.push(format!("{} {is} {} with {}.", first.after, first.before, list.join(", ")));
    }
    words
}

/// A ratio as people say it.
pub(crate) fn times(ratio: f64) -> String {
    match ratio {
        0.0 => "nothing of it is left".to_owned(),
        ratio if ratio >= 1.5 => format!("{} times as much", number(ratio)),
        ratio if ratio > 0.0 && ratio <= 1.0 / 1.5 => format!("1/{} of it", number(1.0 / ratio)),
        ratio => format!("{:+.1} %", (ratio - 1.0) * 100.0),
    }
}

#[cfg(test)]
mod tests;
