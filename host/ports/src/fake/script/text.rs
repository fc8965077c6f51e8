//! What a script observes, as text and as JSON.

use steadfast_model::Payload;

/// A payload as text; bytes that are not UTF-8 in hexadecimal.
pub(super) fn text(payload: &Payload) -> String {
    match std::str::from_utf8(&payload.data) {
        Ok(text) => text.to_owned(),
        Err(_) => hex(&payload.data),
    }
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

pub(super) fn json_array(texts: &[String]) -> String {
    let texts: Vec<String> = texts.iter().map(|text| json_string(text)).collect();
    format!("[{}]", texts.join(","))
}

pub(super) fn json_string(text: &str) -> String {
    let mut json = String::with_capacity(text.len() + 2);
    json.push('"');
    for c in text.chars() {
        match c {
            '"' => json.push_str("\\\""),
            '\\' => json.push_str("\\\\"),
            c if c < ' ' => json.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => json.push(c),
        }
    }
    json.push('"');
    json
}
