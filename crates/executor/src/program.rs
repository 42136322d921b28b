//! What an interpreter's program is sent.

use std::fmt::Write;

use sandbox_model::execution::Language;
use serde_json::Value;

use crate::execution::Request;

/// Code and event of `request`, as the program of its language reads them.
pub(crate) fn message(request: &Request) -> Vec<u8> {
    match request.language {
        // Python's own reader of JSON takes longer to load than Python: the pair is an expression.
        Language::Python => {
            let mut text = String::from("(");
            string(&mut text, &request.code);
            text.push(',');
            literal(&mut text, &request.event);
            text.push(')');
            text.into_bytes()
        }
        Language::Javascript | Language::Shell => {
            let pair = serde_json::json!({ "code": request.code, "event": request.event });
            pair.to_string().into_bytes()
        }
    }
}

/// `value` as Python writes it.
fn literal(text: &mut String, value: &Value) {
    match value {
        Value::Null => text.push_str("None"),
        Value::Bool(true) => text.push_str("True"),
        Value::Bool(false) => text.push_str("False"),
        Value::Number(number) => text.push_str(&number.to_string()),
        Value::String(content) => string(text, content),
        Value::Array(items) => {
            text.push('[');
            for item in items {
                literal(text, item);
                text.push(',');
            }
            text.push(']');
        }
        Value::Object(entries) => {
            text.push('{');
            for (key, item) in entries {
                string(text, key);
                text.push(':');
                literal(text, item);
                text.push(',');
            }
            text.push('}');
        }
    }
}

/// A string that holds nothing but printable ASCII between its quotes.
fn string(text: &mut String, content: &str) {
    text.push('"');
    for character in content.chars() {
        match character {
            '"' | '\\' => {
                text.push('\\');
                text.push(character);
            }
            ' '..='~' => text.push(character),
            _ => {
                // Writing to a string cannot fail.
                let _ = write!(text, "\\U{:08x}", u32::from(character));
            }
        }
    }
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn python_gets_an_expression_of_plain_ascii() {
        let event = json!({ "a": [1, -2.5, null, true], "\"q\\": "é\n\u{1f600}" });
        let request = Request {
            execution_id: "exec_20261116_abcdefgh".parse().unwrap(),
            code: "print(\"hi\")\n".to_owned(),
            language: Language::Python,
            event,
            timeout_seconds: 1,
            stream: false,
        };
        let text = String::from_utf8(message(&request)).unwrap();
        assert_eq!(
            text,
            r#"("print(\"hi\")\U0000000a",{"\"q\\":"\U000000e9\U0000000a\U0001f600","a":[1,-2.5,None,True,],})"#
        );
    }
}
