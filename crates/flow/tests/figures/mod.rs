//! The figures of this crate's suites, held together with the page of the guide that shows them: a
//! suite that gives other figures than the page fails until `cargo xtask figures` has written it
//! anew.

use std::path::Path;

/// The page's text between `<!-- SECTION -->` and `<!-- /SECTION -->` is `text`; with
/// `FULLPIPE_FIGURES` set it is written.
pub fn hold(section: &str, text: &str) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/src/analyze-figures.md");
    let before = std::fs::read_to_string(&page).unwrap();
    let (begin, end) = (format!("<!-- {section} -->\n"), format!("<!-- /{section} -->"));
    let (head, rest) =
        before.split_once(&begin).unwrap_or_else(|| panic!("{}: no {begin}", page.display()));
    let (shown, tail) =
        rest.split_once(&end).unwrap_or_else(|| panic!("{}: no {end}", page.display()));
    if std::env::var_os("FULLPIPE_FIGURES").is_some() {
        std::fs::write(&page, format!("{head}{begin}{text}{end}{tail}")).unwrap();
    } else {
        assert_eq!(shown, text, "{}: `cargo xtask figures` writes it anew", page.display());
    }
}
