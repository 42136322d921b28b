//! This server's hold on its node.
//!
//! The sessions of a node have their workspaces in the data directory of one server, which sets right at its start
//! what the one before it left. Of those that share a database no other may do that for the same node, so a server
//! has a lease of its node, which it renews with every beat and gives back when it ends. It holds it by something
//! that is kept in its data directory, which two servers never share: one that starts where another was killed has
//! the lease at once, and one with a directory of its own is refused. Where nobody shares the database there is none.

use std::sync::{Mutex, MutexGuard, PoisonError};

use sandbox_store::records::Lease;

use crate::control::Control;
use crate::error::ControlError;
use crate::node::SILENCE;

/// The lease by which this server holds its node, where it needs one.
#[derive(Debug, Default)]
pub(crate) struct Tenure {
    lease: Mutex<Option<Lease>>,
}

impl Tenure {
    fn lock(&self) -> MutexGuard<'_, Option<Lease>> {
        // Nothing that is done under it can panic half-way.
        self.lease.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Control {
    /// Takes this server's node, before anything of it is touched. Refused while another server has it.
    pub(crate) async fn take_node(&self) -> Result<(), ControlError> {
        match self.shared.records.is_shared() {
            true => self.begin_tenure().await,
            false => Ok(()),
        }
    }

    async fn begin_tenure(&self) -> Result<(), ControlError> {
        let (records, settings) = (&self.shared.records, &self.shared.settings);
        let (name, holder) = (format!("node {}", settings.node_id), &settings.instance);
        loop {
            let taken = records.acquire_lease(&name, holder, SILENCE).await?;
            if taken.is_some() {
                *self.shared.tenure.lock() = taken;
                return Ok(());
            }
            match records.lease_holder(&name).await? {
                // It has just ended.
                None => {}
                // That of a server that was killed: nobody else has this directory.
                Some(before) if before.holder == *holder => records.release_lease(&before).await?,
                Some(_) => return Err(self.held_by_another().await),
            }
        }
    }

    /// Holds this server's node for a while longer. Where the lease ran out, as it does when the database is away, it
    /// is taken again, unless another server was quicker.
    pub(crate) async fn keep_node(&self) -> Result<(), ControlError> {
        let Some(lease) = self.shared.tenure.lock().clone() else {
            return Ok(());
        };
        let records = &self.shared.records;
        if records.renew_lease(&lease, SILENCE).await? {
            return Ok(());
        }
        let again = records.acquire_lease(&lease.name, &lease.holder, SILENCE);
        match again.await? {
            Some(again) => {
                *self.shared.tenure.lock() = Some(again);
                Ok(())
            }
            None => Err(self.held_by_another().await),
        }
    }

    /// Leaves this server's node to whoever comes next.
    pub(crate) async fn give_node_up(&self) -> Result<(), ControlError> {
        let lease = self.shared.tenure.lock().take();
        if let Some(lease) = lease {
            self.shared.records.release_lease(&lease).await?;
        }
        Ok(())
    }

    /// That another server has the node, and where that one is, as far as it has told.
    async fn held_by_another(&self) -> ControlError {
        let node = self.shared.settings.node_id.clone();
        let endpoint = match self.node(&node).await {
            Ok(other) => other.api_endpoint,
            Err(ControlError::NotFound { .. }) => "an address that is not known yet".to_owned(),
            Err(error) => return error,
        };
        ControlError::Held { node, endpoint }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::Settings;
    use crate::stage::Stage;

    /// A server that is the node `here`, in this directory.
    fn server(stage: &Stage, directory: &str) -> Control {
        let mut settings = Settings::new("here".parse().unwrap());
        directory.clone_into(&mut settings.instance);
        settings.endpoint = format!("http://{directory}");
        stage.beside(settings).0
    }

    #[track_caller]
    fn refused(outcome: Result<(), ControlError>) {
        let error = outcome.unwrap_err();
        assert!(matches!(error, ControlError::Held { .. }), "{error}");
    }

    #[tokio::test]
    async fn a_node_is_one_servers_until_that_gives_it_up() {
        let stage = Stage::still().await;
        let (one, other) = (server(&stage, "one"), server(&stage, "other"));
        one.begin_tenure().await.unwrap();
        one.say_here().await.unwrap();
        let error = other.begin_tenure().await.unwrap_err().to_string();
        assert_eq!(error, "node here is that of another server, at http://one");
        one.keep_node().await.unwrap();
        one.give_node_up().await.unwrap();
        other.begin_tenure().await.unwrap();
        other.keep_node().await.unwrap();
    }

    #[tokio::test]
    async fn a_server_that_starts_where_one_was_killed_has_its_node_at_once() {
        let stage = Stage::still().await;
        let (killed, next) = (server(&stage, "one"), server(&stage, "one"));
        killed.begin_tenure().await.unwrap();
        next.begin_tenure().await.unwrap();
        next.keep_node().await.unwrap();
        refused(killed.keep_node().await);
    }

    #[tokio::test]
    async fn a_node_whose_lease_ran_out_is_had_again_unless_another_server_was_quicker() {
        let stage = Stage::still().await;
        let (one, other) = (server(&stage, "one"), server(&stage, "other"));
        one.begin_tenure().await.unwrap();
        let run_out = async || {
            let lease = one.shared.tenure.lock().clone().unwrap();
            one.records().release_lease(&lease).await.unwrap();
        };
        run_out().await;
        one.keep_node().await.unwrap();
        refused(other.begin_tenure().await);
        run_out().await;
        other.begin_tenure().await.unwrap();
        refused(one.keep_node().await);
        // Who has lost it says nothing of it, and takes nothing from who has it.
        one.leave().await;
        one.node(&one.settings().node_id).await.unwrap_err();
        other.keep_node().await.unwrap();
    }

    #[tokio::test]
    async fn where_nobody_shares_the_database_nobody_needs_a_lease() {
        let stage = Stage::still().await;
        for _ in 0..2 {
            let server = server(&stage, "one");
            server.take_node().await.unwrap();
            server.keep_node().await.unwrap();
        }
        let lease = stage.control.records().lease_holder("node here").await;
        assert_eq!(lease.unwrap(), None);
    }
}
