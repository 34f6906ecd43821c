// SPDX-License-Identifier: MIT OR Apache-2.0
//! A small part of the validation: the whole is `cargo run --release -p paceline-explain --example confusion test`.

use crate::generator::score::{Scored, right, score_all};
use crate::generator::{CAPTURES, TEMPLATES, generate};

#[test]
fn captures_have_every_cause_often_enough_and_two_in_a_quarter() {
    let all: Vec<_> = (0..CAPTURES).map(generate).collect();
    for template in TEMPLATES {
        let count = all.iter().filter(|one| one.causes.contains(&template.cause)).count();
        assert!(count >= 20, "{}: {count}", template.cause);
    }
    let two = all.iter().filter(|one| one.causes.len() == 2).count() as u64;
    assert_eq!(4 * two, CAPTURES);
    let training = all.iter().filter(|one| one.is_training).count() as u64;
    assert_eq!(2 * training, CAPTURES);
}

/// The first captures of the training half: the test half stays unseen until the rules are final.
#[test]
fn most_drops_of_training_captures_have_the_right_cause() {
    let numbers = (0..CAPTURES).filter(|number| generate(*number).is_training).take(TESTED);
    let scored = score_all(numbers);
    let drops: Vec<&Scored> = scored.iter().filter(|one| one.is_drop()).collect();
    let (right, all) = right(drops.iter().copied());
    assert!(all >= LEAST_DROPS, "{all} drops");
    assert!(right as f64 >= RIGHT * all as f64, "{right} of {all}");
}

/// Captures that are run here.
const TESTED: usize = 40;
const LEAST_DROPS: usize = 30;
/// The share that is demanded here: below that of the whole half by the noise of a part.
const RIGHT: f64 = 0.85;
