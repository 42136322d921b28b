//! Requests that may be sent again without their being done again.
//!
//! What a request is going to make is promised in the records before it is made. So when the server that did
//! it ends half-way, it can be told whether it was done: what was promised is there, or nothing was made.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sandbox_model::NodeStatus;
use sandbox_store::records::{Doing, Remembered};

use crate::caller::Caller;
use crate::control::Control;
use crate::error::{ControlError, Kind};

/// After this long nobody is doing a request any more that has not even promised anything.
const LONGEST: Duration = Duration::from_secs(600);

/// The requests that this server is doing, by their scopes and keys.
pub(crate) type Requests = Mutex<BTreeSet<(String, String)>>;

/// That nobody else in this server is doing a request, as long as this is there.
#[derive(Debug)]
pub struct Turn {
    control: Control,
    request: (String, String),
}

impl Drop for Turn {
    fn drop(&mut self) {
        self.control.requests().remove(&self.request);
    }
}

impl Control {
    /// Lets a request be done by one at a time; none when somebody is.
    pub fn take_request(&self, scope: &str, key: &str) -> Option<Turn> {
        let request = (scope.to_owned(), key.to_owned());
        let is_first = self.requests().insert(request.clone());
        is_first.then(|| Turn {
            control: self.clone(),
            request,
        })
    }

    /// What is known of a request; if that is nothing, it is begun.
    pub async fn begin_request(
        &self,
        scope: &str,
        key: &str,
        digest: &str,
    ) -> Result<Remembered, ControlError> {
        let node = self.shared.settings.node_id.as_str();
        let records = &self.shared.records;
        Ok(records.remember(scope, key, digest, node).await?)
    }

    /// What is known of a request that somebody else is doing.
    pub async fn look_at_request(
        &self,
        scope: &str,
        key: &str,
        digest: &str,
    ) -> Result<Option<Remembered>, ControlError> {
        Ok(self.shared.records.recall(scope, key, digest).await?)
    }

    /// Is nobody doing a request that was begun and never finished? Whoever has its turn here knows of this
    /// server; another may have ended, too.
    pub async fn is_abandoned(&self, doing: &Doing) -> Result<bool, ControlError> {
        if doing.by == self.shared.settings.node_id.as_str() {
            return Ok(true);
        }
        let node = match doing.by.parse() {
            Ok(node) => self.node(&node).await,
            Err(_) => Err(ControlError::not_found(Kind::Node, &doing.by)),
        };
        match node {
            Ok(node) => {
                let is_gone = matches!(node.status, NodeStatus::Offline | NodeStatus::Unhealthy);
                let age = self
                    .shared
                    .records
                    .now()
                    .await?
                    .duration_since(doing.begun_at);
                Ok(is_gone || age > LONGEST.try_into().unwrap_or_default())
            }
            Err(ControlError::NotFound { .. }) => Ok(true),
            Err(error) => Err(error),
        }
    }

    fn requests(&self) -> MutexGuard<'_, BTreeSet<(String, String)>> {
        let requests = self.shared.requests.lock();
        // Nothing that is done under it can panic half-way.
        requests.unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes down what the caller's request is going to make.
    pub(crate) async fn promise(&self, caller: &Caller, object: &str) -> Result<(), ControlError> {
        let Some(request) = &caller.repeatable else {
            return Ok(());
        };
        let node = self.shared.settings.node_id.as_str();
        let promised = self.shared.records.promise(
            &request.scope,
            &request.key,
            node,
            request.begun_at,
            object,
        );
        match promised.await? {
            true => Ok(()),
            false => Err(ControlError::conflict(
                "the request was sent again meanwhile, and is being done for that",
                "wait for the answer to the later one",
            )),
        }
    }
}
