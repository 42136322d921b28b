//! Why S3 refused a request.

use object_store::Error;

/// What an error means to us.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    /// There is no such bucket.
    NoBucket,
    /// We may not.
    Denied,
    /// Anything else.
    Other,
}

impl Cause {
    pub(super) fn of(error: &Error) -> Cause {
        match error {
            Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => Cause::Denied,
            // For lists the library keeps the status to itself, but tells the answer.
            error => Cause::in_answer(&error.to_string()),
        }
    }

    /// By the code that S3 puts in its answer.
    fn in_answer(text: &str) -> Cause {
        let code = text
            .split_once("<Code>")
            .and_then(|(_, rest)| rest.split_once("</Code>"));
        match code {
            Some(("NoSuchBucket", _)) => Cause::NoBucket,
            Some((
                "AccessDenied"
                | "SignatureDoesNotMatch"
                | "InvalidAccessKeyId"
                | "ExpiredToken"
                | "InvalidToken"
                | "RequestTimeTooSkewed"
                | "AllAccessDisabled"
                | "NotSignedUp",
                _,
            )) => Cause::Denied,
            _ => Cause::Other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_in_an_answer_tells_the_cause() {
        let answer =
            |code: &str| format!("status 404: <Error><Code>{code}</Code><Message>m</Message>");
        assert_eq!(Cause::in_answer(&answer("NoSuchBucket")), Cause::NoBucket);
        assert_eq!(Cause::in_answer(&answer("AccessDenied")), Cause::Denied);
        assert_eq!(Cause::in_answer(&answer("SlowDown")), Cause::Other);
        assert_eq!(Cause::in_answer("connection refused"), Cause::Other);
    }
}
