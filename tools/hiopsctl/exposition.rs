// SPDX-License-Identifier: GPL-2.0
//! Prometheus' text format, version 0.0.4: families of samples with labels.

use serde::Serialize;

/// A value with its labels.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Value {
    /// In the order in which they are written.
    pub(crate) labels: crate::pairs::Pairs<String>,
    pub(crate) value: f64,
    /// Of a histogram: which part of it, as the name ends.
    #[serde(skip_serializing_if = "str::is_empty")]
    pub(crate) part: &'static str,
}

/// All values of a name.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Family {
    pub(crate) name: &'static str,
    /// `counter`, `gauge` or `histogram`.
    #[serde(rename = "type")]
    pub(crate) kind: &'static str,
    pub(crate) help: &'static str,
    pub(crate) values: Vec<Value>,
}

impl Family {
    /// A family without values. A counter is one by its name's end.
    pub(crate) fn new(name: &'static str, help: &'static str) -> Self {
        let counts = name.ends_with("_total");
        Self {
            name,
            kind: if counts { "counter" } else { "gauge" },
            help,
            values: Vec::new(),
        }
    }

    /// One of histograms, whose values are added with [`Family::add_part`].
    pub(crate) fn histogram(name: &'static str, help: &'static str) -> Self {
        Self {
            kind: "histogram",
            ..Self::new(name, help)
        }
    }

    /// Adds a value.
    pub(crate) fn add(&mut self, labels: &[(&str, &str)], value: f64) {
        self.add_part("", labels, value);
    }

    /// Adds a value whose name ends with `part`.
    pub(crate) fn add_part(&mut self, part: &'static str, labels: &[(&str, &str)], value: f64) {
        let own = |(name, text): &(&str, &str)| (name.to_string(), text.to_string());
        self.values.push(Value {
            labels: crate::pairs::Pairs(labels.iter().map(own).collect()),
            value,
            part,
        });
    }

    /// Its lines; none where there is no value.
    pub(crate) fn text(&self) -> String {
        if self.values.is_empty() {
            return String::new();
        }
        let Self {
            name, kind, help, ..
        } = self;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        let mut text = format!("# HELP {name} {help}\n# TYPE {name} {kind}\n");
        for Value {
            labels,
            value,
            part,
        } in &self.values
        {
            let labels: Vec<String> = (labels.0.iter())
                .map(|(name, text)| format!("{name}=\"{}\"", escaped(text)))
                .collect();
            let labels = match labels.is_empty() {
                true => String::new(),
                false => format!("{{{}}}", labels.join(",")),
            };
            text.push_str(&format!("{name}{part}{labels} {value}\n"));
        }
        text
    }
}

/// A label's text as it stands between quotes.
fn escaped(text: &str) -> String {
    let text = text.replace('\\', "\\\\").replace('"', "\\\"");
    text.replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped_and_numbers_are_plain() {
        let mut family = Family::new("a_total", "What \\ is\ncounted");
        assert_eq!(family.text(), "");
        family.add(
            &[("model", "a\"b\\c\nd"), ("disk", "x")],
            9_007_199_254_740_992.0,
        );
        family.add(&[], 0.0000123);
        assert_eq!(
            family.text(),
            "# HELP a_total What \\\\ is\\ncounted\n# TYPE a_total counter\n\
             a_total{model=\"a\\\"b\\\\c\\nd\",disk=\"x\"} 9007199254740992\n\
             a_total 0.0000123\n"
        );
        assert_eq!(Family::new("a_bytes", "").kind, "gauge");
    }
}
