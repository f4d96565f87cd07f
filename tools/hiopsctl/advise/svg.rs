// SPDX-License-Identifier: GPL-2.0
//! A picture of bars in groups, each with the ends of its runs.

use std::fmt::Write;

/// A bar, and from where to where its runs went.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bar {
    pub(crate) value: f64,
    pub(crate) least: f64,
    pub(crate) most: f64,
}

/// Bars that stand together, with the line below them.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) name: String,
    pub(crate) bars: Vec<Bar>,
}

/// Colours that are told apart without colour vision, too (Okabe and Ito).
const COLOURS: [&str; 3] = ["#999999", "#0072b2", "#cccccc"];
const WIDTH: f64 = 840.0;
const HEIGHT: f64 = 360.0;
/// Where the bars stand, and how far they reach up.
const FLOOR: f64 = 290.0;
const TOP: f64 = 70.0;
const LEFT: f64 = 70.0;

/// The picture.
pub(crate) fn bars(title: &str, unit: &str, keys: &[&str], groups: &[Group]) -> String {
    let ends = groups
        .iter()
        .flat_map(|group| &group.bars)
        .map(|bar| bar.most);
    let most = ends.fold(0.0, f64::max).max(1.0);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    label(&mut svg, (LEFT, 22.0), ("start", 15), title);
    for (at, (key, colour)) in keys.iter().zip(COLOURS).enumerate() {
        // CAST: some keys.
        let x = LEFT + 150.0 * at as f64;
        rect(&mut svg, (x, 36.0), (12.0, 12.0), colour);
        label(&mut svg, (x + 17.0, 46.0), ("start", 12), key);
    }
    for part in [0.0, 0.25, 0.5, 0.75, 1.0] {
        let y = height(part * most, most);
        line(&mut svg, (LEFT, y), (WIDTH - 10.0, y), "#dddddd");
        label(
            &mut svg,
            (LEFT - 6.0, y + 4.0),
            ("end", 12),
            &short(part * most),
        );
    }
    label(&mut svg, (LEFT - 6.0, TOP - 12.0), ("end", 12), unit);
    // CAST: some groups of some bars.
    let wide = (WIDTH - LEFT - 20.0) / groups.len().max(1) as f64;
    for (at, group) in groups.iter().enumerate() {
        let x = LEFT + 10.0 + wide * at as f64;
        let bar = wide * 0.8 / group.bars.len().max(1) as f64;
        for (at, (of, colour)) in group.bars.iter().zip(COLOURS).enumerate() {
            let x = x + bar * at as f64;
            let y = height(of.value, most);
            rect(&mut svg, (x, y), (bar - 2.0, FLOOR - y), colour);
            let middle = x + bar / 2.0 - 1.0;
            let (from, to) = (height(of.least, most), height(of.most, most));
            line(&mut svg, (middle, from), (middle, to), "#000000");
        }
        for (at, words) in group.name.lines().enumerate() {
            let y = FLOOR + 18.0 + 15.0 * at as f64;
            label(&mut svg, (x + wide * 0.4, y), ("middle", 12), words);
        }
    }
    svg.push_str("</svg>\n");
    svg
}

fn height(value: f64, most: f64) -> f64 {
    FLOOR - (FLOOR - TOP) * value / most
}

fn rect(svg: &mut String, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str) {
    // Writing to a string does not fail, here and below.
    let _ = writeln!(
        svg,
        "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
         fill=\"{fill}\"/>"
    );
}

fn line(svg: &mut String, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str) {
    let _ = writeln!(
        svg,
        "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"{colour}\"/>"
    );
}

fn label(svg: &mut String, (x, y): (f64, f64), (anchor, size): (&str, u32), text: &str) {
    let text = text
        .replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;");
    let _ = writeln!(
        svg,
        "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" \
         font-size=\"{size}\">{text}</text>"
    );
}

/// A number of few digits.
fn short(value: f64) -> String {
    match value {
        v if v >= 1e6 => format!("{:.1}M", v / 1e6),
        v if v >= 1e4 => format!("{:.0}k", v / 1e3),
        v if v >= 1e3 => format!("{:.1}k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_reach_as_far_as_they_are_long() {
        let bar = |value| Bar {
            value,
            least: value,
            most: value,
        };
        let group = Group {
            name: "a <b> & c\nsecond".into(),
            bars: vec![bar(100.0), bar(50.0), bar(0.0)],
        };
        let svg = bars("title", "IOPS", &["one", "two", "three"], &[group]);
        let heights: Vec<&str> = svg
            .lines()
            .filter(|line| line.starts_with("<rect x") && !line.contains("y=\"36.0\""))
            .filter_map(|line| line.split("height=\"").nth(1)?.split('"').next())
            .collect();
        assert_eq!(heights, ["220.0", "110.0", "0.0"]);
        assert!(
            svg.contains("a &lt;b&gt; &amp; c") && svg.contains(">second<"),
            "{svg}"
        );
        assert!(
            svg.ends_with("</svg>\n") && svg.matches("<text").count() == 12,
            "{svg}"
        );
        assert!(bars("", "", &[], &[]).contains(">1<"));
        let all = [0.0, 999.0, 1_500.0, 250_000.0, 2_340_000.0].map(short);
        assert_eq!(all, ["0", "999", "1.5k", "250k", "2.3M"]);
    }
}
