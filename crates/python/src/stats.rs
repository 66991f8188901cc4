//! The statistics of `measure`.

use std::cell::RefCell;

use measure::stats::{Confidence, Estimate};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::InputError;

/// Value, lower and upper end of the interval, number of observations.
type Parts = (f64, Option<f64>, Option<f64>, u64);

fn parts(estimate: Estimate) -> Parts {
    let Estimate { value, interval, n } = estimate;
    (value, interval.map(|(low, _)| low), interval.map(|(_, high)| high), n)
}

fn level(confidence: f64) -> PyResult<Confidence> {
    Confidence::new(confidence).ok_or_else(|| {
        let takes = "it takes a number between 0 and 1, such as 0.95";
        InputError::new_err(format!("confidence {confidence} is not accepted: {takes}"))
    })
}

/// The samples of `measure` are finite.
fn finite(numbers: impl IntoIterator<Item = f64>) -> PyResult<()> {
    match numbers.into_iter().enumerate().find(|(_, number)| !number.is_finite()) {
        None => Ok(()),
        Some((place, found)) => {
            let error = format!("value {place} is {found}; it takes finite numbers");
            Err(InputError::new_err(error))
        }
    }
}

fn finite_pairs(pairs: &[(f64, f64)]) -> PyResult<()> {
    finite(pairs.iter().flat_map(|(a, b)| [*a, *b]))
}

#[pyfunction]
pub fn mean(values: Vec<f64>, confidence: f64) -> PyResult<Option<Parts>> {
    finite(values.iter().copied())?;
    Ok(level(confidence)?.mean(&values).map(parts))
}

#[pyfunction]
pub fn quantile(values: Vec<f64>, q: f64, confidence: f64) -> PyResult<Option<Parts>> {
    finite(values.iter().copied())?;
    if !(q > 0.0 && q < 1.0) {
        let takes = "it takes a number between 0 and 1, such as 0.95";
        return Err(InputError::new_err(format!("q {q} is not accepted: {takes}")));
    }
    Ok(level(confidence)?.quantile(&values, q).map(parts))
}

#[pyfunction]
pub fn geometric_ratio(pairs: Vec<(f64, f64)>, confidence: f64) -> PyResult<Option<Parts>> {
    finite_pairs(&pairs)?;
    Ok(level(confidence)?.geometric_ratio(&pairs).map(parts))
}

#[pyfunction]
pub fn ratio_of_sums(pairs: Vec<(f64, f64)>, confidence: f64) -> PyResult<Option<Parts>> {
    finite_pairs(&pairs)?;
    Ok(level(confidence)?.ratio_of_sums(&pairs).map(parts))
}

/// `statistic` takes a list of values and gives a finite number.
#[pyfunction]
pub fn bca(
    py: Python<'_>,
    values: Vec<Py<PyAny>>,
    statistic: Py<PyAny>,
    confidence: f64,
    resamples: usize,
    seed: u64,
) -> PyResult<Option<Parts>> {
    let confidence = level(confidence)?;
    let places: Vec<usize> = (0..values.len()).collect();
    // The first thing that goes wrong; what comes after it is not computed.
    let wrong: RefCell<Option<PyErr>> = RefCell::new(None);
    let compute = |sample: &[usize]| -> PyResult<f64> {
        let list = PyList::new(py, sample.iter().map(|place| values[*place].bind(py)))?;
        let value: f64 = statistic.call1(py, (list,))?.extract(py)?;
        if value.is_finite() {
            return Ok(value);
        }
        Err(InputError::new_err(format!("the statistic gave {value}; it takes finite numbers")))
    };
    let estimate = confidence.bca(
        &places,
        |sample| {
            if wrong.borrow().is_some() {
                return 0.0;
            }
            compute(sample).unwrap_or_else(|error| {
                *wrong.borrow_mut() = Some(error);
                0.0
            })
        },
        resamples,
        seed,
    );
    match wrong.into_inner() {
        Some(error) => Err(error),
        None => Ok(estimate.map(parts)),
    }
}
