//! Bytes in a message that is text.
//!
//! Each byte is the character of its number: most of what programs print is ASCII, and stays as it is.

use serde::{Deserialize, Deserializer, Serializer, de::Error};

pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&Characters(bytes))
}

pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    let text = String::deserialize(from)?;
    from_text(&text).ok_or_else(|| D::Error::custom("a character that is no byte"))
}

/// The bytes as text.
pub(crate) fn to_text(bytes: &[u8]) -> String {
    Characters(bytes).to_string()
}

/// The bytes that `text` stands for, if it does.
pub(crate) fn from_text(text: &str) -> Option<Vec<u8>> {
    text.chars()
        .map(|character| u8::try_from(character).ok())
        .collect()
}

/// Without a copy of all of them.
struct Characters<'b>(&'b [u8]);

impl std::fmt::Display for Characters<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        use std::fmt::Write;
        self.0
            .iter()
            .try_for_each(|byte| f.write_char(char::from(*byte)))
    }
}

#[cfg(test)]
mod tests {
    use serde::{Deserialize, Serialize};

    #[derive(Serialize, Deserialize)]
    struct Some(#[serde(with = "super")] Vec<u8>);

    #[test]
    fn every_byte_comes_back() {
        let bytes: Vec<u8> = (0..=255).chain(*b"plain").collect();
        let text = serde_json::to_string(&Some(bytes.clone())).unwrap();
        assert!(text.ends_with("plain\""));
        assert_eq!(serde_json::from_str::<Some>(&text).unwrap().0, bytes);
        assert!(serde_json::from_str::<Some>("\"\u{100}\"").is_err());
    }
}
