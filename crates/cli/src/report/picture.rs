//! The picture of a report in the README, from runs made by hand.

use super::chart::{HEIGHT, STYLE, WIDTH, escape};
use super::page::charts;
use super::run::{Bucket, Point, Run, Totals};

/// Returns a run of twenty seconds whose latency is `factor` times the usual one.
pub fn run(name: &str, factor: f64) -> Run {
    // A sequence that looks like chance.
    let noise = |number: u32| f64::from(number.wrapping_mul(2_654_435_761) >> 16 & 0xff) / 255.0;
    let point = |number: u32| {
        let warm = 1.0 - 0.8 / f64::from(number + 1);
        Point {
            seconds: f64::from(number + 1) * 0.5,
            records: (850_000.0 * warm / factor + 50_000.0 * noise(number)).round(),
            bytes: (85_000_000.0 * warm / factor).round(),
            p50: Some(factor * (1.0 + (noise(number + 50) * 10.0).round() / 10.0)),
            p99: Some(
                factor
                    * (4.0
                        + (noise(number + 100) * 30.0).round() / 10.0
                        + if number == 22 { 9.0 } else { 0.0 }),
            ),
            requests: (640.0 * warm + 40.0 * noise(number + 150)).round(),
            cpu: Some((118.0 * warm + 8.0 * noise(number + 200)).round()),
        }
    };
    let bucket = |number: u32| Bucket {
        us: (factor * 300.0 * 1.25_f64.powi(number as i32)) as u64,
        count: (1e6 * (-((f64::from(number) - 7.0) / 3.0).powi(2)).exp()) as u64 + 100,
    };
    Run {
        name: name.into(),
        tool: "producer-perf-test".into(),
        latency: "from send to acknowledgement".into(),
        started: "2026-11-29T10:00:05.250Z".into(),
        settings: vec![("topic".into(), "orders".into()), ("acks".into(), "all".into())],
        totals: Totals {
            seconds: 20.0,
            records: 16_000_000,
            bytes: 1_600_000_000,
            requests: 12_400,
            cpu_seconds: Some(23.5),
            p50: Some(1.5 * factor),
            p95: Some(3.9 * factor),
            p99: Some(5.5 * factor),
            p999: Some(9.0 * factor),
            max: Some(16.0 * factor),
        },
        points: (0..40).map(point).collect(),
        histogram: (0..16).map(bucket).collect(),
    }
}

/// Returns two charts beside each other as a picture of its own.
fn svg(runs: &[Run]) -> String {
    let chosen = charts(runs);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"a report\">\n\
         <style>{}.h{{fill:var(--ink);font:bold 14px system-ui,sans-serif}}</style>\n\
         <rect width=\"100%\" height=\"100%\" rx=\"8\" fill=\"var(--paper)\"/>\n",
        2.0 * WIDTH,
        HEIGHT + 70.0,
        STYLE.replace('%', "svg")
    );
    for (index, chart) in [&chosen[1], &chosen[2]].into_iter().enumerate() {
        let x = index as f64 * WIDTH;
        out += &format!("<text class=\"h\" x=\"{}\" y=\"26\">{}</text>\n", x + 20.0, escape(&chart.title));
        let mut left = x + 20.0;
        let names = ["p50", "p99"].into_iter().filter(|_| index == 0);
        let keys = names.map(|name| (name, if name == "p50" { " d" } else { "" }, "muted".to_owned()));
        let of_runs =
            runs.iter().enumerate().map(|(number, run)| (run.name.as_str(), "", format!("r{number}")));
        for (name, dashed, colour) in of_runs.chain(keys) {
            out += &format!(
                "<path class=\"l{dashed}\" stroke=\"var(--{colour})\" d=\"M{left} 43h20\"/><text class=\"t\" x=\"{}\" y=\"47\">{}</text>\n",
                left + 26.0,
                escape(name)
            );
            left += 50.0 + 7.0 * name.len() as f64;
        }
        out += &format!("<g transform=\"translate({x} 58)\">{}</g>\n", chart.body());
    }
    out + "</svg>\n"
}

#[test]
fn picture_in_the_readme_is_a_report() {
    let picture = svg(&[run("before", 1.7), run("after", 1.0)]);
    crate::pictures::compare("report.svg", &picture);
}
