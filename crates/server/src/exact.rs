//! JSON read as the API's description means it.
//!
//! What serde derives is more generous: it takes an array for an object, field by field, and an object for a word
//! of an enum; and what it says of a mistake names our types. A deserializer in [`Exact`] takes an object where there
//! is one, a string where there is a word, and says so. It is around every value below it, too.

use std::fmt;

use serde::de::value::StrDeserializer;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

/// A deserializer, or any part of reading with one.
#[derive(Debug)]
pub(crate) struct Exact<T>(pub(crate) T);

/// A visitor that is shown objects only.
struct Object<V>(V);

/// A visitor of an enum that is shown words only.
struct Word<V>(V);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Exact<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(Exact(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(Exact(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_newtype_struct(name, Exact(visitor))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(Object(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0.deserialize_str(Word(visitor))
    }

    // JSON tells by itself what a value is.
    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq
        tuple tuple_struct map identifier ignored_any
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Object<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Exact(map))
    }
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Word<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_str<E: Error>(self, word: &str) -> Result<V::Value, E> {
        self.0.visit_enum(StrDeserializer::new(word))
    }
}

/// What is no more than passed on.
macro_rules! pass {
    ($($visit:ident: $type:ty),* $(,)?) => {$(
        fn $visit<E: Error>(self, value: $type) -> Result<V::Value, E> {
            self.0.$visit(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for Exact<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pass!(
        visit_bool: bool,
        visit_i64: i64,
        visit_u64: u64,
        visit_f64: f64,
        visit_str: &str,
        visit_borrowed_str: &'de str,
        visit_string: String,
    );

    fn visit_unit<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_none<E: Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(Exact(value))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, value: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(Exact(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(Exact(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(Exact(map))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for Exact<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, value: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(Exact(value))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for Exact<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(Exact(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for Exact<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_key_seed(Exact(seed))
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(Exact(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

/// What serde says of a mistake, with a number's range instead of our type of it.
pub(crate) fn in_words(problem: &serde_json::Error) -> String {
    let text = problem.to_string();
    let Some((mistake, expected)) = text.rsplit_once(", expected ") else {
        return text;
    };
    let end = expected.find(' ').unwrap_or(expected.len());
    let (name, place) = expected.split_at(end);
    let range = match name {
        "u16" => format!("an integer from 0 to {}", u16::MAX),
        "u32" => format!("an integer from 0 to {}", u32::MAX),
        "u64" | "usize" => "an integer from 0 on".to_owned(),
        "i32" => format!("an integer from {} to {}", i32::MIN, i32::MAX),
        "f64" => "a number".to_owned(),
        _ => return text,
    };
    format!("{mistake}, expected {range}{place}")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde::Deserialize;
    use serde_json::value::RawValue;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Outer {
        word: Option<Letter>,
        inner: Option<Inner>,
        #[serde(default)]
        list: Vec<Inner>,
        #[serde(default)]
        map: BTreeMap<String, Inner>,
        any: Option<Value>,
        raw: Option<Box<RawValue>>,
    }

    #[derive(Debug, Default, PartialEq, Deserialize)]
    #[serde(default)]
    struct Inner {
        number: u16,
        part: f64,
        text: Option<String>,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Letter {
        Alpha,
    }

    fn read(text: &str) -> Result<Outer, String> {
        let reader = &mut serde_json::Deserializer::from_str(text);
        Outer::deserialize(Exact(reader)).map_err(|error| in_words(&error))
    }

    #[test]
    fn what_is_as_described_is_read_as_ever() {
        let read = read(
            r#"{ "word": "alpha", "inner": { "number": 7, "part": 2, "text": "\u00e9\n" }, "list": [{}, { "part": 0.5 }],
                "map": { "a": { "text": null } }, "any": [{ "deep": [[], null, -1, 1.5] }], "raw": [1.0,  10000000000000000000000] }"#,
        );
        let Outer {
            word,
            inner,
            list,
            map,
            any,
            raw,
        } = read.unwrap();
        let seven = Inner {
            number: 7,
            part: 2.0,
            text: Some("é\n".to_owned()),
        };
        assert_eq!((word, inner), (Some(Letter::Alpha), Some(seven)));
        assert_eq!((list.len(), list[1].part), (2, 0.5));
        assert_eq!(map["a"], Inner::default());
        assert_eq!(any, Some(json!([{ "deep": [[], null, -1, 1.5] }])));
        // To the letter.
        assert_eq!(raw.unwrap().get(), "[1.0,  10000000000000000000000]");
        assert!(self::read("{}").unwrap().inner.is_none());
    }

    #[test]
    fn an_array_is_no_object_at_any_depth() {
        for text in [
            "[]",
            r#"["alpha", null]"#,
            r#"{ "inner": [7, 0.5] }"#,
            r#"{ "list": [{}, [7]] }"#,
            r#"{ "map": { "a": [] } }"#,
        ] {
            let error = read(text).unwrap_err();
            let expected = "invalid type: sequence, expected an object at line 1";
            assert!(error.starts_with(expected), "{text}: {error}");
        }
    }

    #[test]
    fn an_object_is_no_word() {
        let error = read(r#"{ "word": { "alpha": null } }"#).unwrap_err();
        assert!(error.contains("map, expected a string"), "{error}");
        let error = read(r#"{ "word": "beta" }"#).unwrap_err();
        assert!(error.contains("`beta`, expected `alpha`"), "{error}");
    }

    #[test]
    fn no_mistake_names_our_types() {
        for text in [
            "null",
            "1",
            "\"x\"",
            r#"{ "x": 1 }"#,
            r#"{ "word": 1 }"#,
            r#"{ "word": [] }"#,
            r#"{ "inner": 1 }"#,
            r#"{ "inner": { "number": 1.5 } }"#,
            r#"{ "inner": { "number": 65536 } }"#,
            r#"{ "inner": { "number": "1" } }"#,
            r#"{ "inner": { "part": "1" } }"#,
            r#"{ "list": {} }"#,
            r#"{ "map": [] }"#,
        ] {
            let error = read(text).unwrap_err();
            let ours = ["struct", "enum", "Outer", "Inner", "Letter", "u16", "f64"];
            let leaks = ours.iter().any(|name| error.contains(name));
            assert!(!leaks, "{text}: {error}");
        }
        let error = read(r#"{ "inner": { "number": 65536 } }"#).unwrap_err();
        let expected =
            "invalid value: integer `65536`, expected an integer from 0 to 65535 at line 1";
        assert!(error.starts_with(expected), "{error}");
    }
}
