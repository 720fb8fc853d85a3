//! Ctrl-C while the interpreter is released, and errors on their way to Python.

use crate::error::Error;
use pyo3::prelude::*;
use quietcore_answers::AnswerError;
use std::sync::{Mutex, PoisonError};

/// What a signal handler of Python raised.
#[derive(Debug, Default)]
pub(crate) struct Interrupt(Mutex<Option<PyErr>>);

impl Interrupt {
    /// Whether to go on: runs Python's handlers, as only the main thread does.
    pub(crate) fn goes_on(&self) -> bool {
        let Err(raised) = Python::attach(|py| py.check_signals()) else { return true };
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(raised);
        false
    }

    /// What to raise: what the handler raised, else the sentence.
    pub(crate) fn error(&self, error: &AnswerError) -> PyErr {
        let raised = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.unwrap_or_else(|| Error::new_err(error.to_string()))
    }
}

/// A mistake of the caller's.
pub(crate) fn refused(sentence: impl std::fmt::Display) -> PyErr {
    Error::new_err(sentence.to_string())
}
