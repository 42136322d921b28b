//! Executors that say nothing.
//!
//! Whoever waits for an executor waits here, and not for ever: one that is silent for too long is ended. It may be
//! stopped, or out of its mind; what it holds is nothing but mounts, and the next one finds the same workspace.

use std::os::fd::OwnedFd;
use std::time::Duration;

use sandbox_executor::protocol::{Answer, Ask};
use sandbox_runtime::LineError;

use crate::control::Control;
use crate::live::Use;

/// How long an executor may be silent: it says every five seconds that an execution goes on.
pub(crate) const SILENCE: Duration = Duration::from_secs(15);

/// How long an answer may take before its executor is asked whether it is there.
const MOMENT: Duration = Duration::from_secs(5);

impl Control {
    /// Waits for an executor's next word. One that says nothing for too long, though it does not stand still,
    /// is given up: it is ended, so that nothing is done twice where it is to be done again.
    pub(crate) async fn heard<T>(
        &self,
        used: &Use,
        word: impl Future<Output = Result<T, LineError>>,
    ) -> Result<T, LineError> {
        let mut word = std::pin::pin!(word);
        let workspace = used.workspace();
        loop {
            match tokio::time::timeout(SILENCE, &mut word).await {
                Ok(word) => return word,
                Err(_) if self.shared.live.stood_still(workspace, SILENCE) => {}
                Err(_) => break,
            }
        }
        if let Err(error) = self.shared.live.end_used(used).await {
            tracing::warn!(session = %workspace, %error, "cannot end the silent executor of session {workspace}");
        }
        Err(LineError::Silent(SILENCE))
    }

    /// Asks an executor something that is answered once. That may take long, of much that is to be removed for
    /// example: who is silent meanwhile is one that does not say that it is there when it is asked.
    pub(crate) async fn asked(
        &self,
        used: &Use,
        ask: Ask,
    ) -> Result<(Answer, Option<OwnedFd>), LineError> {
        let mut answer = std::pin::pin!(used.line.ask(ask));
        loop {
            if let Ok(answer) = tokio::time::timeout(MOMENT, &mut answer).await {
                return answer;
            }
            tokio::select! {
                biased;
                answer = &mut answer => return answer,
                there = self.heard(used, used.line.ask(Ask::Ping)) => drop(there?),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use sandbox_executor::protocol::Ask;

    use super::SILENCE;
    use crate::caller::Caller;
    use crate::stage::{Deed, Stage, new, soon};

    #[tokio::test]
    async fn nobody_waits_for_ever_for_an_executor_that_says_nothing() {
        let stage = Stage::new().await;
        let session = stage.session().await;
        stage.host.fall_silent();
        let (control, caller) = (&stage.control, Caller::nobody());
        let (made, opened, uploaded, asked) = soon(async {
            let used = control.line(&session).await.unwrap();
            tokio::join!(
                control.create_session(&caller, new(None)),
                control.open_file(&session.id, "some"),
                control.upload(&caller, &session.id, Some("other")),
                control.asked(&used, Ask::Ping),
            )
        })
        .await;
        for error in [
            made.unwrap_err().to_string(),
            opened.unwrap_err().to_string(),
            uploaded.unwrap_err().to_string(),
        ] {
            assert!(error.contains("executor does not answer"), "{error}");
        }
        asked.unwrap_err();
        // Each was ended, so that the next one is asked.
        assert!(stage.host.count(Deed::End) >= 2);
    }

    #[tokio::test]
    async fn what_takes_long_is_waited_for_while_its_executor_is_there() {
        let stage = Stage::new().await;
        let session = stage.session().await;
        let used = stage.control.line(&session).await.unwrap();
        let remove = Ask::RemoveAll("much".into());
        let removed = stage.control.asked(&used, remove);
        let patience = SILENCE + Duration::from_secs(2);
        let early = tokio::time::timeout(patience, removed).await;
        assert!(early.is_err(), "{early:?}");
        assert!(!used.line.is_cut());
        assert_eq!(stage.host.count(Deed::End), 0);
    }
}
