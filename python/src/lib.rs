//! The Python module `quietcore._quietcore`: what the command answers, as Arrow tables.
//!
//! Every function opens its input as the command does, releases the interpreter while it works, looks for
//! Ctrl-C now and then, and raises `quietcore.Error` with the command's sentence. Documented for users in
//! `docs/guide/python.md`; types are in `package/quietcore/__init__.pyi`.

mod answer;
mod ask;
mod error;
mod simulate;
mod table;
mod watch;

use error::Error;
use pyo3::prelude::*;

#[pymodule]
fn _quietcore(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add("Error", module.py().get_type::<Error>())?;
    module.add_class::<table::Table>()?;
    module.add_class::<answer::Answer>()?;
    module.add_function(wrap_pyfunction!(ask::explain, module)?)?;
    module.add_function(wrap_pyfunction!(ask::events, module)?)?;
    module.add_function(wrap_pyfunction!(ask::timers, module)?)?;
    module.add_function(wrap_pyfunction!(ask::verify, module)?)?;
    module.add_function(wrap_pyfunction!(ask::whatif, module)?)?;
    module.add_function(wrap_pyfunction!(ask::diff, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sim, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::check_sweep, module)?)?;
    module.add_function(wrap_pyfunction!(simulate::sweep, module)?)
}
