//! Every figure of an explanation, once each: a small trace whose figures are all different, worked out by
//! hand, against the whole JSON and all series; the rules of Perfetto's slices; every text of the check-up.

#[path = "figures/decoder.rs"]
mod decoder;
#[path = "figures/doctor.rs"]
mod doctor;
#[path = "figures/findings.rs"]
mod findings;
#[path = "figures/json.rs"]
mod json;
#[path = "figures/made.rs"]
mod made;
#[path = "figures/perfetto.rs"]
mod perfetto;
#[path = "figures/series.rs"]
mod series;
#[path = "figures/trace.rs"]
mod trace;
