//! The exception of the module.

use pyo3::create_exception;
use pyo3::exceptions::PyException;

create_exception!(quietcore, Error, PyException, "An input has no answer; the text says why.");
