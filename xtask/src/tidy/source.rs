//! Rust source as tidy's rules read it: comments and the contents of strings are blanked, lines
//! stay.
//!
//! This is not a parser. It recognises comments, strings, characters and lifetimes. That is enough
//! to know that any brace or path that is left belongs to the code.

/// `text` with comments and the contents of string and character literals replaced by spaces.
pub fn blanked(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let length =
            literal_or_comment(&bytes[at..], at.checked_sub(1).map(|before| bytes[before]));
        let Some(length) = length else {
            out.push(bytes[at]);
            at += 1;
            continue;
        };
        let end = (at + length).min(bytes.len());
        out.extend(bytes[at..end].iter().map(|byte| if *byte == b'\n' { b'\n' } else { b' ' }));
        at = end;
    }
    String::from_utf8(out).unwrap_or_default()
}

/// The length of the comment or literal that `rest` begins with.
fn literal_or_comment(rest: &[u8], before: Option<u8>) -> Option<usize> {
    let in_word = before.is_some_and(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match rest {
        [b'/', b'/', ..] => Some(rest.iter().position(|byte| *byte == b'\n').unwrap_or(rest.len())),
        [b'/', b'*', ..] => Some(block_comment(rest)),
        [b'b', b'\'', ..] if !in_word => character(&rest[1..]).map(|length| length + 1),
        [b'r' | b'b', ..] if !in_word => raw_string(rest),
        [b'"', ..] => Some(string(rest)),
        [b'\'', ..] => character(rest),
        _ => None,
    }
}

/// The length of a block comment. Block comments nest.
fn block_comment(rest: &[u8]) -> usize {
    let (mut depth, mut at) = (0, 0);
    while at < rest.len() {
        match &rest[at..] {
            [b'/', b'*', ..] => (depth, at) = (depth + 1, at + 2),
            [b'*', b'/', ..] if depth == 1 => return at + 2,
            [b'*', b'/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of `r"..."`, `r#"..."#` or `br"..."`; `None` for a word that begins with r or b.
fn raw_string(rest: &[u8]) -> Option<usize> {
    let prefix = rest.iter().take_while(|byte| matches!(byte, b'r' | b'b')).count();
    let hashes = rest[prefix..].iter().take_while(|byte| **byte == b'#').count();
    let open = prefix + hashes;
    if prefix > 2 || rest.get(open) != Some(&b'"') {
        return None;
    }
    if !rest[..prefix].contains(&b'r') {
        return (hashes == 0).then(|| prefix + string(&rest[prefix..]));
    }
    let mut close = vec![b'"'];
    close.extend(std::iter::repeat_n(b'#', hashes));
    let body = &rest[open + 1..];
    let end = body.windows(close.len()).position(|window| window == close);
    Some(end.map_or(rest.len(), |end| open + 1 + end + close.len()))
}

fn string(rest: &[u8]) -> usize {
    let mut at = 1;
    while at < rest.len() {
        match rest[at] {
            b'\\' => at += 2,
            b'"' => return at + 1,
            _ => at += 1,
        }
    }
    rest.len()
}

/// The length of a character literal; `None` for a lifetime.
fn character(rest: &[u8]) -> Option<usize> {
    match rest {
        [_, b'\\', ..] => {
            let close = rest.iter().skip(3).position(|byte| *byte == b'\'')?;
            Some(close + 4)
        }
        _ => {
            let text = std::str::from_utf8(rest.get(1..rest.len().min(5))?);
            let first = match text {
                Ok(text) => text.chars().next()?.len_utf8(),
                Err(error) if error.valid_up_to() > 0 => {
                    let valid = &rest[1..=error.valid_up_to()];
                    std::str::from_utf8(valid).ok()?.chars().next()?.len_utf8()
                }
                Err(_) => return None,
            };
            (rest.get(1 + first) == Some(&b'\'')).then_some(first + 2)
        }
    }
}

/// The part of `text` (blanked or not) before the unit tests at its end.
pub fn without_tests(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod ").next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_code_is_left() {
        let cases = [
            ("let a = \"}\\\"{\"; // {", "let a = ;"),
            ("let b = r#\"{\"}\"#; /* { /* } */ */ x", "let b = ;  x"),
            ("let c = '{'; fn f<'a>(x: &'a str) {}", "let c = ; fn f<'a>(x: &'a str) {}"),
            ("let d = b'\\''; let e = '\\u{7d}'; }", "let d = ; let e = ; }"),
            ("let bar = br\"{\"; r.b", "let bar = ; r.b"),
            ("let f = 'ü'; {", "let f = ; {"),
        ];
        for (code, left) in cases {
            let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert_eq!(squeezed(&blanked(code)), squeezed(left), "{code}");
            assert_eq!(blanked(code).len(), code.len());
        }
    }
}
