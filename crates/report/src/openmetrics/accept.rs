//! Format of the response to a scraper: content negotiation by `Accept`, after RFC 9110, section
//! 12.5.1.

/// A format in which metrics are exposed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus's text format 0.0.4, which every scraper can read.
    Text,
    /// `OpenMetrics` 1.0.0, as text.
    OpenMetrics,
    /// Prometheus's protobuf format, the only one of the three that has native histograms.
    Protobuf,
}

impl Format {
    /// All formats. The first is the default.
    pub const ALL: [Format; 3] = [Format::Text, Format::OpenMetrics, Format::Protobuf];

    /// The value of `Content-Type`.
    pub fn content_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; version=0.0.4; charset=utf-8",
            Format::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Format::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; \
                 encoding=delimited"
            }
        }
    }

    /// The preferred format of this `Accept` header: the highest q, then the most specific range,
    /// then the first one. [`Format::Text`] if none is acceptable or the header is empty:
    /// unrequested text is more useful than status 406.
    pub fn negotiate(accept: &str) -> Self {
        let ranges: Vec<Range> = accept.split(',').filter_map(Range::parse).collect();
        let mut best = (Format::Text, (0.0, 0, 0));
        for format in Self::ALL {
            // The most specific range that matches a format decides its q, so `text/plain;q=0, */*`
            // means all but text.
            let matching = ranges
                .iter()
                .enumerate()
                .filter_map(|(at, range)| Some((range.exactness(format)?, at, range)));
            let Some((exactness, at, range)) =
                matching.max_by_key(|(exactness, at, _)| (*exactness, ranges.len() - at))
            else {
                continue;
            };
            let score = (range.q, exactness, ranges.len() - at);
            if range.q > 0.0 && score > best.1 {
                best = (format, score);
            }
        }
        best.0
    }
}

/// One media range of an `Accept` header.
#[derive(Debug)]
struct Range {
    /// Such as `text/plain`, in lower case.
    media: String,
    /// Names and values in lower case, without q.
    parameters: Vec<(String, String)>,
    q: f64,
}

impl Range {
    /// `None` for an invalid media range, which is ignored.
    fn parse(text: &str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let media = parts.next()?.to_ascii_lowercase();
        if !media.contains('/') {
            return None;
        }
        let mut range = Self {
            media,
            parameters: Vec::new(),
            q: 1.0,
        };
        for (name, value) in parts.filter_map(|part| part.split_once('=')) {
            let (name, value) = (
                name.trim().to_ascii_lowercase(),
                value.trim().trim_matches('"').to_ascii_lowercase(),
            );
            if name == "q" {
                range.q = value.parse().ok().filter(|q| (0.0..=1.0).contains(q))?;
            } else {
                range.parameters.push((name, value));
            }
        }
        Some(range)
    }

    /// How specifically it matches the format; `None` if it does not match.
    fn exactness(&self, format: Format) -> Option<u8> {
        let (media, terms): (&str, &[(&str, &str)]) = match format {
            Format::Text => ("text/plain", &[("version", "0.0.4")]),
            Format::OpenMetrics => ("application/openmetrics-text", &[("version", "1.0.0")]),
            Format::Protobuf => (
                "application/vnd.google.protobuf",
                &[
                    ("proto", "io.prometheus.client.metricfamily"),
                    ("encoding", "delimited"),
                ],
            ),
        };
        let class = media.split_once('/').map_or("", |(class, _)| class);
        if self.media == "*/*" {
            return Some(0);
        }
        if self.media.strip_suffix("/*") == Some(class) {
            return Some(1);
        }
        // Another version or message is another format; `charset` and `escaping` make no difference
        // here.
        let disagrees = |(name, value): &(String, String)| {
            terms
                .iter()
                .any(|(term, wanted)| term == name && wanted != value)
        };
        (self.media == media && !self.parameters.iter().any(disagrees)).then_some(2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn scrapers_get_what_they_ask_for() {
        // As Prometheus 2.42 with native histograms, Prometheus 2.42 without, Prometheus 3, curl
        // and a browser ask.
        for (accept, format) in [
            (
                "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;\
                 encoding=delimited,application/openmetrics-text;version=1.0.0;q=0.8,application/\
                 openmetrics-text;version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::Protobuf,
            ),
            (
                "application/openmetrics-text;version=1.0.0,application/openmetrics-text;\
                 version=0.0.1;q=0.75,text/plain;version=0.0.4;q=0.5,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                 application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=1.0.0;\
                 escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
                Format::OpenMetrics,
            ),
            ("*/*", Format::Text),
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                Format::Text,
            ),
            ("", Format::Text),
            ("text/plain", Format::Text),
            ("application/*", Format::OpenMetrics),
            (
                "application/openmetrics-text; version=\"1.0.0\"; charset=utf-8",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;version=2.0.0, text/plain;q=0.1",
                Format::Text,
            ),
            (
                "application/vnd.google.protobuf;proto=other.Message;encoding=delimited",
                Format::Text,
            ),
            ("text/plain;q=0, */*;q=0.5", Format::OpenMetrics),
            (
                "text/plain;q=0.3, application/openmetrics-text;q=0.2",
                Format::Text,
            ),
            (
                "image/png, text/plain;q=nonsense, application/openmetrics-text;q=0",
                Format::Text,
            ),
        ] {
            assert_eq!(Format::negotiate(accept), format, "{accept}");
        }
    }

    proptest! {
        #[test]
        fn a_format_asked_for_by_its_own_content_type_is_answered(
            format in prop::sample::select(&Format::ALL[..]), before in "[a-z/;=,. ]{0,30}"
        ) {
            let accept = format!("{before};q=0.1, {}", format.content_type());
            prop_assert_eq!(Format::negotiate(format.content_type()), format);
            let _ = Format::negotiate(&accept);
        }

        #[test]
        fn no_text_breaks_the_parser(text in "\\PC*") {
            let _ = Format::negotiate(&text);
        }
    }
}
