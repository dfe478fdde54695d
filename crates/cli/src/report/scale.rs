//! The axes of a chart: where a value lies, and which values are labelled.

use crate::top::figures::short;

/// An axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scale {
    /// From 0 to this value.
    Linear(f64),
    /// Between two powers of ten.
    Logarithmic(i32, i32),
}

impl Scale {
    /// Returns an axis from 0 to a round number that is not less than `most`.
    pub fn linear(most: f64, labels: usize) -> Scale {
        let most = if most.is_finite() && most > 0.0 { most } else { 1.0 };
        let step = Self::step(most, labels);
        Scale::Linear((most / step).ceil() * step)
    }

    /// Returns an axis from 0 to `most` itself.
    pub fn exact(most: f64) -> Scale {
        Scale::Linear(if most.is_finite() && most > 0.0 { most } else { 1.0 })
    }

    /// Returns an axis with the powers of ten around these positive values.
    pub fn logarithmic(least: f64, most: f64) -> Scale {
        let least = least.max(1e-9).log10().floor() as i32;
        Scale::Logarithmic(least, (most.max(1e-9).log10().ceil() as i32).max(least + 1))
    }

    /// Returns the place of a value: 0 at the beginning of the axis, 1 at its end.
    pub fn place(self, value: f64) -> f64 {
        let place = match self {
            Scale::Linear(most) => value / most,
            Scale::Logarithmic(least, most) => {
                (value.max(1e-12).log10() - f64::from(least)) / f64::from(most - least)
            }
        };
        place.clamp(0.0, 1.0)
    }

    /// Returns the values that are labelled, about `count`.
    pub fn ticks(self, count: usize) -> Vec<f64> {
        match self {
            Scale::Linear(most) => {
                let step = Self::step(most, count);
                (0..=(most / step + 1e-9) as u32).map(|number| f64::from(number) * step).collect()
            }
            Scale::Logarithmic(least, most) => {
                let every = (most - least) as usize / count.max(1) + 1;
                (least..=most).step_by(every).map(|power| 10_f64.powi(power)).collect()
            }
        }
    }

    /// The step between labels: 1, 2 or 5 times a power of ten.
    fn step(most: f64, count: usize) -> f64 {
        let rough = most / count.max(1) as f64;
        let power = 10_f64.powi(rough.log10().floor() as i32);
        let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
        factor.unwrap_or(10.0) * power
    }
}

/// Returns the label of a value.
pub fn label(value: f64) -> String {
    if value > 0.0 && value < 1.0 {
        return format!("{value:.3}").trim_end_matches('0').to_owned();
    }
    short(value).replacen(".0", "", 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn linear_axis_ends_at_a_round_number() {
        let scale = Scale::linear(873_000.0, 4);
        assert_eq!(scale, Scale::Linear(1_000_000.0));
        let labels: Vec<String> = scale.ticks(4).into_iter().map(label).collect();
        assert_eq!(labels, ["0", "500k", "1M"]);
        assert_eq!(Scale::linear(0.0, 4), Scale::Linear(1.0));
        assert_eq!(Scale::linear(f64::NAN, 4), Scale::Linear(1.0));
        assert_eq!(Scale::linear(3.0, 4).ticks(4), [0.0, 1.0, 2.0, 3.0]);
    }

    #[test]
    fn logarithmic_axis_has_powers_of_ten() {
        let scale = Scale::logarithmic(0.3, 250.0);
        assert_eq!(scale, Scale::Logarithmic(-1, 3));
        assert_eq!(
            scale.ticks(8).into_iter().map(label).collect::<Vec<_>>(),
            ["0.1", "1", "10", "100", "1k"]
        );
        assert!((scale.place(10.0) - 0.5).abs() < 1e-9);
        assert_eq!((scale.place(0.0), scale.place(1e9)), (0.0, 1.0));
        assert_eq!(Scale::logarithmic(5.0, 5.0), Scale::Logarithmic(0, 1));
        assert_eq!(Scale::logarithmic(1e-3, 1e8).ticks(6).len(), 6);
    }
}
