//! The gym: steps of many episodes at once, without the GIL, written into arrays that Python then owns.

use crate::ask::{Ask, raised_or, registry};
use crate::controller::Registered;
use crate::errors::Failure;
use crate::stop::interruptible;
use numpy::ndarray::{Array2, Array3};
use numpy::{IntoPyArray, PyArray1, PyArray2, PyArray3, PyReadonlyArray1};
use paceline::Registry;
use paceline_lab::gym::{
    self, Course, CourseSpec, FEATURES, GymError, Outputs, Pilot, Quantity, Range, Reward, TRUTHS,
};
use paceline_units::TimeDelta;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use std::sync::{Mutex, PoisonError};

impl From<GymError> for Failure {
    fn from(error: GymError) -> Self {
        match error {
            GymError::Scenario(problem) => Self::Problem(problem),
            GymError::World(error) => Self::World(error),
            error => {
                let hint = error.hint().map_or_else(String::new, |hint| format!("; {hint}"));
                Self::Raised(PyValueError::new_err(format!("{error}{hint}")))
            }
        }
    }
}

/// What episodes are drawn from: `paceline.gym.Task`.
#[derive(FromPyObject)]
pub struct Task {
    asks: Vec<Ask>,
    ranges: Vec<(String, String, f64, f64)>,
    flow: Option<String>,
    step_s: f64,
    delay_per_s: f64,
    loss: f64,
}

impl Task {
    fn course(&self, pilot: Pilot, registry: &Registry) -> Result<Course, Failure> {
        let each = |ask: &Ask| Ok((ask.origin()?, ask.changes(None)?));
        let range = |(key, text, low, high): &(String, String, f64, f64)| Range {
            key: key.clone(),
            text: text.clone(),
            low: *low,
            high: *high,
        };
        let spec = CourseSpec {
            scenarios: self.asks.iter().map(each).collect::<Result<_, Failure>>()?,
            ranges: self.ranges.iter().map(range).collect(),
            flow: self.flow.clone(),
            pilot,
            step: TimeDelta::from_secs_f64(self.step_s),
            reward: Reward { delay_per_s: self.delay_per_s, loss: self.loss },
        };
        raised_or(|| Course::new(spec, registry))
    }
}

/// Episodes side by side.
#[pyclass(frozen, module = "paceline._paceline")]
pub struct Gym {
    gym: Mutex<gym::Gym>,
    seats: usize,
    history: usize,
    /// Of the actions -1 and 1, bit/s.
    #[pyo3(get)]
    rates: (u64, u64),
}

/// What a step came to: observations, rewards, ends, truths.
type Step<'py> =
    (Bound<'py, PyArray3<f32>>, Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<bool>>, Bound<'py, PyArray2<f64>>);

#[pymethods]
impl Gym {
    #[new]
    fn new(task: Task, seats: usize, history: usize, threads: usize, controllers: Vec<Registered>) -> PyResult<Self> {
        // What a controller in Python raises is known to the thread that it was raised on.
        let threads = if controllers.is_empty() { threads } else { 1 };
        let registry = registry(controllers)?;
        let course = task.course(Pilot::Agent, &registry)?;
        let rates = (course.space().min.as_bps(), course.space().max.as_bps());
        let gym = raised_or(|| gym::Gym::new(course, registry, seats, history, threads))?;
        Ok(Self { seats, history: gym.history(), gym: Mutex::new(gym), rates })
    }

    /// Begins an episode in every seat.
    fn reset<'py>(&self, py: Python<'py>, seeds: Vec<Option<u64>>) -> PyResult<Step<'py>> {
        self.act(py, |gym, out| gym.reset(&seeds, out))
    }

    /// One step of every episode.
    fn step<'py>(&self, py: Python<'py>, actions: PyReadonlyArray1<'py, f32>) -> PyResult<Step<'py>> {
        let actions = actions.as_array().to_vec();
        self.act(py, |gym, out| gym.step(&actions, out))
    }
}

impl Gym {
    fn act<'py>(
        &self,
        py: Python<'py>,
        act: impl FnOnce(&mut gym::Gym, Outputs<'_>) -> Result<(), GymError> + Send,
    ) -> PyResult<Step<'py>> {
        let Self { seats, history, .. } = *self;
        let mut observations = Array3::zeros((seats, history, FEATURES.len()));
        let mut truths = Array2::zeros((seats, TRUTHS.len()));
        let (mut rewards, mut truncated) = (vec![0.0; seats], vec![false; seats]);
        py.detach(|| {
            let out = Outputs {
                observations: observations.as_slice_mut().expect("it is one piece"),
                rewards: &mut rewards,
                truncated: &mut truncated,
                truths: truths.as_slice_mut().expect("it is one piece"),
            };
            // A step that panicked has left its episodes somewhere; none of it is unsafe to look at.
            raised_or(|| act(&mut self.gym.lock().unwrap_or_else(PoisonError::into_inner), out))
        })?;
        Ok((
            observations.into_pyarray(py),
            rewards.into_pyarray(py),
            truncated.into_pyarray(py),
            truths.into_pyarray(py),
        ))
    }
}

/// A score as Python reads it: seed, steps, reward, used, delay (s), loss.
type Score = (u64, u64, f64, f64, f64, f64);

/// The episodes of these seeds under a registered controller; none: the scenario's own.
#[pyfunction]
#[pyo3(signature = (task, controller, seeds, threads, controllers))]
pub fn evaluate(
    py: Python<'_>,
    task: Task,
    controller: Option<String>,
    seeds: Vec<u64>,
    threads: usize,
    controllers: Vec<Registered>,
) -> PyResult<Vec<Score>> {
    let threads = if controllers.is_empty() { threads } else { 1 };
    let registry = registry(controllers)?;
    interruptible(py, |stop| {
        if let Some(name) = &controller {
            crate::ask::known(name, &registry)?;
        }
        let course = task.course(controller.map_or(Pilot::Scenario, Pilot::Controller), &registry)?;
        let mut scores = Vec::new();
        // A few at a time, so that Ctrl-C is heard.
        for seeds in seeds.chunks(threads.max(1) * 4) {
            if stop.is_asked() {
                break;
            }
            scores.extend(raised_or(|| gym::evaluate(&course, &registry, seeds, threads))?);
        }
        Ok(scores.iter().map(|s| (s.seed, s.steps, s.reward, s.used, s.delay_s, s.loss)).collect())
    })
}

/// Name, unit and meaning of each.
type Told = Vec<(&'static str, &'static str, &'static str)>;

/// What an observation is made of, then what is true of a step.
#[pyfunction]
pub fn quantities() -> (Told, Told) {
    let told = |of: &[Quantity]| of.iter().map(|q| (q.name, q.unit, q.meaning)).collect();
    (told(&FEATURES), told(&TRUTHS))
}
