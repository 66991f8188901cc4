//! The page: one document with its script and style, and the same as a file that needs no server.

use hyper::body::Bytes;

const DOCUMENT: &str = include_str!("page/page.html");
/// Stands in the document where script and style come in.
const HEAD: &str = "<!-- head -->\n";
const LIVE_HEAD: &str = "<link rel=\"icon\" href=\"data:,\">\n\
    <link rel=\"stylesheet\" href=\"uplot.css\">\n<link rel=\"stylesheet\" href=\"page.css\">\n\
    <script src=\"uplot.js\" defer></script>\n<script src=\"page.js\" defer></script>\n";

const CSS: &str = include_str!("page/page.css");
const JS: &str = concat!(
    "(() => {\n\"use strict\";\n",
    include_str!("page/text.js"),
    include_str!("page/bins.js"),
    include_str!("page/chart.js"),
    include_str!("page/charts.js"),
    include_str!("page/tables.js"),
    include_str!("page/page.js"),
    "})();\n"
);
const UPLOT_CSS: &str = include_str!("../../../vendor/uplot/uPlot.min.css");
const UPLOT_JS: &str = include_str!("../../../vendor/uplot/uPlot.iife.min.js");
/// MIT wants it in all copies.
const UPLOT_LICENCE: &str = include_str!("../../../vendor/uplot/LICENSE");

/// What may be loaded, and from where. The charts set styles by script only, which needs no leave.
pub(super) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; \
    connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// A file of the page by its path: its type and text. There is nothing secret in these.
pub(super) fn file(path: &str) -> Option<(&'static str, Bytes)> {
    let (kind, text) = match path {
        "/page.css" => ("text/css; charset=utf-8", Bytes::from_static(CSS.as_bytes())),
        "/page.js" => ("text/javascript; charset=utf-8", Bytes::from_static(JS.as_bytes())),
        "/uplot.css" => ("text/css; charset=utf-8", Bytes::from_static(UPLOT_CSS.as_bytes())),
        "/uplot.js" => ("text/javascript; charset=utf-8", Bytes::from(uplot())),
        _ => return None,
    };
    Some((kind, text))
}

fn uplot() -> String {
    format!("/*\n{}\n*/\n{UPLOT_JS}", UPLOT_LICENCE.trim())
}

/// The document of the live page.
pub(super) fn live() -> String {
    DOCUMENT.replace(HEAD, LIVE_HEAD)
}

/// All in one file: what was seen, and what shows it. The nonce is all that its policy lets run.
pub(super) fn saved(data: &Saved<'_>, nonce: &str) -> String {
    let Saved { begin, samples, now } = data;
    let samples: Vec<&str> = samples.iter().filter_map(|text| str::from_utf8(text).ok()).collect();
    let data = format!(
        "{{\"begin\":{begin},\"samples\":[{}],\"now\":{}}}",
        samples.join(",\n"),
        str::from_utf8(now).unwrap_or("null")
    );
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src data:; \
         base-uri 'none'; form-action 'none'"
    );
    // `<` would let a name end the element; in JSON it may be written otherwise.
    let data = data.replace('<', "\\u003c");
    let head = format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <style nonce=\"{nonce}\">\n{UPLOT_CSS}\n{CSS}</style>\n"
    );
    let tail = format!(
        "<script type=\"application/json\" id=\"saved\">{data}</script>\n\
         <script nonce=\"{nonce}\">\n{}\n{JS}</script>\n</body>",
        uplot()
    );
    DOCUMENT.replace(HEAD, &head).replace("</body>", &tail)
}

/// What a saved page shows, as JSON texts.
pub(super) struct Saved<'a> {
    pub(super) begin: &'a str,
    pub(super) samples: &'a [Bytes],
    pub(super) now: &'a [u8],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_is_small_and_asks_for_nothing_elsewhere() {
        let files = ["/page.css", "/page.js", "/uplot.css", "/uplot.js"];
        let files = files.map(|path| file(path).expect("it is a file of the page").1);
        let size = live().len() + files.iter().map(Bytes::len).sum::<usize>();
        assert!(size < 300_000, "{size} bytes");
        for text in [DOCUMENT, CSS, JS, LIVE_HEAD] {
            assert!(!text.contains("http:") && !text.contains("https:") && !text.contains("//www"));
        }
        assert!(live().contains("src=\"page.js\""));
    }

    #[test]
    fn no_name_escapes_from_a_saved_page() {
        let evil = Bytes::from_static(br#"{"way":"</script><script>alert(1)</script><!--"}"#);
        let text = saved(
            &Saved { begin: "{}", samples: &[evil.clone(), evil.clone()], now: &evil },
            "abc",
        );
        assert!(!text.contains("alert(1)</script>") && !text.contains("<script>"), "{text}");
        assert_eq!(text.matches("</script>").count(), 2, "data and script");
        assert_eq!(text.matches("\\u003c/script>").count(), 6);
        assert!(text.contains("'nonce-abc'") && text.contains("Leon Sorokin"));
    }
}
