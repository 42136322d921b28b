//! An upload in parts.

use bytes::Bytes;
use object_store::{MultipartUpload, Result};

/// An upload that is aborted unless it was completed, so that no part of it stays and is paid for.
pub(super) struct Upload(Option<Box<dyn MultipartUpload>>);

impl Upload {
    pub(super) fn new(begun: Box<dyn MultipartUpload>) -> Upload {
        Upload(Some(begun))
    }

    /// Sends the next part.
    pub(super) async fn part(&mut self, part: Bytes) -> Result<()> {
        match &mut self.0 {
            Some(upload) => upload.put_part(part.into()).await,
            None => Ok(()),
        }
    }

    /// Makes the parts an object.
    pub(super) async fn complete(&mut self) -> Result<()> {
        if let Some(upload) = &mut self.0 {
            upload.complete().await?;
            self.0 = None;
        }
        Ok(())
    }

    /// Gives the parts up. Where the server is not there to hear it, its own rules must remove them.
    pub(super) async fn abort(mut self) {
        if let Some(mut upload) = self.0.take() {
            let _ = upload.abort().await;
        }
    }
}

impl Drop for Upload {
    /// Whoever waited for it has gone away, in the middle of a part.
    fn drop(&mut self) {
        if let (Some(mut upload), Ok(runtime)) =
            (self.0.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(async move {
                let _ = upload.abort().await;
            });
        }
    }
}
