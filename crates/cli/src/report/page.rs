//! The page: a table of the runs, five charts, and the runs as JSON.

use std::fmt::Write;

use super::chart::{COLOURS, Chart, STYLE, Series, escape};
use super::run::{Point, Run, from_json, to_json};
use super::scale::Scale;
use crate::top::figures::short;

/// What begins and ends the JSON of the runs.
const DATA_START: &str = "<script type=\"application/json\" id=\"ottla-report\">";
const DATA_END: &str = "</script>";

const CSS: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Returns the page with these runs.
pub fn page(runs: &[Run]) -> String {
    let title = match runs {
        [run] => format!("{} \u{2013} {}", run.tool, run.name),
        _ => format!("{} runs compared", runs.len()),
    };
    let title = escape(&title);
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
         <style>{}{CSS}</style>\n<main>\n<h1>{title}</h1>\n",
        STYLE.replace('%', ":root")
    );
    table(&mut out, runs);
    out.push_str("<div class=\"charts\">\n");
    for (number, chart) in charts(runs).iter().enumerate() {
        let keys = keys(chart, runs);
        let _ = writeln!(
            out,
            "<figure><figcaption><b>{}</b><output></output>{keys}</figcaption>{}</figure>",
            escape(&chart.title),
            chart.svg(number)
        );
    }
    out.push_str("<div>");
    settings(&mut out, runs);
    out.push_str("</div></div>\n");
    // In JSON, a letter may be written as its number anywhere in a text.
    let data = to_json(runs).to_string().replace('<', "\\u003c");
    let _ = write!(
        out,
        "<footer>Written by ottla {}; <code>ottla report</code> reads it.</footer>\n</main>\n\
         {DATA_START}{data}{DATA_END}\n<script>{SCRIPT}</script>\n</html>\n",
        env!("CARGO_PKG_VERSION")
    );
    out
}

/// Returns the runs of a page.
///
/// # Errors
///
/// The text is not a page of this program.
pub fn runs_of(page: &str) -> Result<Vec<Run>, String> {
    let missing = || "it is not a report of ottla".to_owned();
    let (_, data) = page.split_once(DATA_START).ok_or_else(missing)?;
    let (data, _) = data.split_once(DATA_END).ok_or_else(missing)?;
    let value = serde_json::from_str(data).map_err(|error| format!("its data are damaged: {error}"))?;
    from_json(&value)
}

/// Whether a line is dashed, and its values.
type Line = (bool, fn(&Point) -> Option<f64>);

/// The charts of the runs.
pub fn charts(runs: &[Run]) -> Vec<Chart> {
    let of = |title: &str, values: &[Line]| over_time(runs, title, values);
    let mut charts = vec![
        of("Records per second", &[(false, |point| Some(point.records))]),
        of("Latency over time, ms", &[(true, |point| point.p50), (false, |point| point.p99)]),
        histogram(runs),
        of("Requests per second", &[(false, |point| Some(point.requests))]),
    ];
    if runs.iter().any(|run| run.totals.cpu_seconds.is_some()) {
        charts.push(of("CPU of the process, % of one processor", &[(false, |point| point.cpu)]));
    }
    charts
}

fn over_time(runs: &[Run], title: &str, values: &[Line]) -> Chart {
    let mut series = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        for (is_dashed, value) in values {
            let points = run.points.iter().map(|point| (point.seconds, value(point))).collect();
            series.push(Series { run: number, is_dashed: *is_dashed, points });
        }
    }
    let all = || series.iter().flat_map(|one| &one.points);
    let longest = all().map(|(seconds, _)| *seconds).fold(0.0, f64::max);
    let most = all().filter_map(|(_, value)| *value).fold(0.0, f64::max);
    let (x, y) = (Scale::exact(longest), Scale::linear(most, 4));
    Chart { title: title.to_owned(), across: "seconds".into(), x, y, is_stepped: false, series }
}

/// The share of the records per latency, in steps of a tenth of a power of ten.
fn histogram(runs: &[Run]) -> Chart {
    const STEPS: f64 = 10.0;
    let step = |us: u64| ((us.max(1) as f64 / 1000.0).log10() * STEPS).floor() as i32;
    let steps = || runs.iter().flat_map(|run| run.histogram.iter().map(|bucket| step(bucket.us)));
    let (least, most) = (steps().min().unwrap_or(0), steps().max().unwrap_or(0));
    let edge = |step: i32| 10_f64.powf(f64::from(step) / STEPS);
    let mut series = Vec::new();
    for (number, run) in runs.iter().enumerate() {
        let mut shares = vec![0.0; (most - least + 1) as usize];
        for bucket in &run.histogram {
            shares[(step(bucket.us) - least) as usize] += bucket.count as f64;
        }
        let total = shares.iter().sum::<f64>().max(1.0);
        let mut points: Vec<(f64, Option<f64>)> =
            (least..).zip(&shares).map(|(step, share)| (edge(step), Some(share / total * 100.0))).collect();
        points.push((edge(most + 1), Some(0.0)));
        series.push(Series { run: number, is_dashed: false, points });
    }
    let highest =
        series.iter().flat_map(|one| &one.points).filter_map(|(_, share)| *share).fold(0.0, f64::max);
    Chart {
        title: "Latency, % of the records".into(),
        across: "ms".into(),
        x: Scale::logarithmic(edge(least), edge(most + 1)),
        y: Scale::linear(highest, 4),
        is_stepped: true,
        series,
    }
}

/// The names of the runs with their colours, if there are several, and what dashed lines are.
fn keys(chart: &Chart, runs: &[Run]) -> String {
    let key = |dashed: &str, colour: &str, name: &str| {
        format!("<span><i class=\"k{dashed}\" style=\"--c:var(--{colour})\"></i>{}</span>", escape(name))
    };
    let mut keys: String = match runs {
        [_] => String::new(),
        _ => (0..)
            .zip(runs)
            .map(|(number, run)| key("", &format!("r{}", number % COLOURS), &run.name))
            .collect(),
    };
    if chart.series.iter().any(|one| one.is_dashed) {
        keys += &key(" dashed", "muted", "p50");
        keys += &key("", "muted", "p99");
    }
    if keys.is_empty() { keys } else { format!("<div class=\"keys\">{keys}</div>") }
}

/// The columns of the table.
const HEADINGS: [&str; 12] = [
    "run",
    "records",
    "MB",
    "seconds",
    "records/s",
    "MB/s",
    "p50 ms",
    "p95 ms",
    "p99 ms",
    "p99.9 ms",
    "max ms",
    "CPU s",
];

/// Returns the figures of a run, one per heading after the name.
pub fn cells(run: &Run) -> [String; 11] {
    const MEGABYTE: f64 = 1024.0 * 1024.0;
    let totals = &run.totals;
    let megabytes = totals.bytes as f64 / MEGABYTE;
    let latency = |value: Option<f64>| match value {
        Some(value) if value < 100.0 => format!("{value:.1}"),
        Some(value) => format!("{value:.0}"),
        None => "-".to_owned(),
    };
    [
        totals.records.to_string(),
        format!("{megabytes:.1}"),
        format!("{:.2}", totals.seconds),
        format!("{:.0}", run.rate()),
        format!("{:.2}", megabytes / totals.seconds.max(1e-6)),
        latency(totals.p50),
        latency(totals.p95),
        latency(totals.p99),
        latency(totals.p999),
        latency(totals.max),
        totals.cpu_seconds.map_or("-".to_owned(), |seconds| format!("{seconds:.2}")),
    ]
}

/// Returns the headings of the table.
pub fn headings() -> [&'static str; 12] {
    HEADINGS
}

fn table(out: &mut String, runs: &[Run]) {
    out.push_str("<div class=\"scroll\"><table>\n<tr>");
    HEADINGS.iter().for_each(|heading| {
        let _ = write!(out, "<th>{heading}</th>");
    });
    out.push_str("</tr>\n");
    for (number, run) in runs.iter().enumerate() {
        let _ = write!(
            out,
            "<tr><td><i class=\"k\" style=\"--c:var(--r{})\"></i>{}</td>",
            number % COLOURS,
            escape(&run.name)
        );
        for cell in cells(run) {
            let _ = write!(out, "<td>{cell}</td>");
        }
        out.push_str("</tr>\n");
    }
    out.push_str("</table></div>\n");
}

fn settings(out: &mut String, runs: &[Run]) {
    for run in runs {
        let _ = write!(
            out,
            "<details{}><summary>{}: settings</summary><dl><dt>command</dt><dd>ottla {}</dd><dt>start</dt><dd>{}</dd>\
             <dt>latency</dt><dd>{}</dd><dt>requests</dt><dd>{}</dd>",
            if runs.len() == 1 { " open" } else { "" },
            escape(&run.name),
            escape(&run.tool),
            escape(&run.started),
            escape(&run.latency),
            short(run.totals.requests as f64),
        );
        for (name, value) in &run.settings {
            let _ = write!(out, "<dt>{}</dt><dd>{}</dd>", escape(name), escape(value));
        }
        out.push_str("</dl></details>\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::picture::run;

    #[test]
    fn runs_are_read_back_from_a_page() {
        let runs = [run("one", 1.0), run("two", 1.5)];
        let page = page(&runs);
        let read = runs_of(&page).unwrap();
        assert_eq!(read.len(), 2);
        assert_eq!(read[1].name, "two");
        assert_eq!(read[0].histogram, runs[0].histogram);
        assert_eq!(read[0].points.len(), runs[0].points.len());
        assert_eq!(super::page(&read), page, "nothing that is shown gets lost");
    }

    #[test]
    fn text_of_a_run_cannot_end_the_script() {
        let evil = "</script><script>alert(1)</script>\u{2028}";
        let mut run = run(evil, 1.0);
        run.settings.push(("topic".into(), evil.into()));
        let page = page(&[run]);
        assert_eq!(page.matches("</script>").count(), 2, "one ends the data, one the script");
        assert!(!page.contains("<script>alert"));
        assert_eq!(runs_of(&page).unwrap()[0].name, evil);
    }

    #[test]
    fn page_loads_nothing_from_elsewhere() {
        let page = page(&[run("one", 1.0)]);
        for part in ["http:", "https:", "src=", "@import", "url(", "<link"] {
            assert!(!page.contains(part), "{part}");
        }
        assert_eq!(page.matches("<svg ").count(), 5);
        assert!(page.contains("prefers-color-scheme:dark"));
    }

    #[test]
    fn run_without_records_has_a_page() {
        let empty = Run { name: "nothing".into(), ..Run::default() };
        let page = page(&[empty]);
        assert!(runs_of(&page).unwrap()[0].points.is_empty());
        assert!(!page.contains("NaN") && !page.contains("inf"));
    }

    #[test]
    fn other_pages_are_not_reports() {
        assert_eq!(runs_of("<html></html>").unwrap_err(), "it is not a report of ottla");
        let cut = format!("{DATA_START}{{\"ottla_report\": 1");
        assert_eq!(runs_of(&cut).unwrap_err(), "it is not a report of ottla");
        assert!(runs_of(&format!("{cut}{DATA_END}")).unwrap_err().starts_with("its data are damaged"));
    }
}
