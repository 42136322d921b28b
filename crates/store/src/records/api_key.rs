//! Keys to the API. A hash goes in and never comes out.

use jiff::Timestamp;
use sandbox_model::{ApiKey, KeyId};
use sea_orm::sea_query::Expr;
use sea_orm::{ColumnTrait, EntityTrait, PaginatorTrait, QueryFilter};

use super::Records;
use super::error::{Fault, StoreError};
use super::page::{Order, Page, PageRequest};
use super::rows::api_key::{Column, Entity, KIND, Model};
use super::value::micros;
use super::versioned::{self, Named};

const ORDER: Order<Column> = Order {
    list: "keys",
    at: Column::CreatedAt,
    id: Column::Id,
};

impl Records {
    /// Adds a key, known by the hash of its secret.
    pub async fn insert_key(&self, key: &ApiKey, hash: &str) -> Result<(), StoreError> {
        let row = &Model::of(key, hash)?;
        let named = Named {
            kind: KIND,
            id: &row.id,
        };
        let inserted = self.write_at_once(|connection| async move {
            versioned::insert(&connection, row.clone(), named).await
        });
        inserted.await.map_err(|fault| self.explain(fault))
    }

    /// The key whose secret has this hash, unless it was revoked.
    pub async fn key_by_hash(&self, hash: &str) -> Result<Option<ApiKey>, StoreError> {
        let row = Entity::find()
            .filter(Column::Hash.eq(hash))
            .filter(Column::RevokedAt.is_null())
            .one(self.reader())
            .await;
        row.map_err(|error| self.explain(error))?
            .map(Model::read)
            .transpose()
    }

    /// Keys, newest first, revoked ones too.
    pub async fn keys(&self, page: &PageRequest) -> Result<Page<ApiKey>, StoreError> {
        let select = ORDER.page::<_, String>(Entity::find(), page)?;
        let read = async {
            let rows = select.all(self.reader()).await?;
            // There are as many keys as somebody made by hand: these are counted.
            Ok::<_, Fault>((rows, Entity::find().count(self.reader()).await?))
        };
        let (rows, total) = read.await.map_err(|fault| self.explain(fault))?;
        let key = |row: &Model| (row.created_at, row.id.clone());
        ORDER.assemble(rows, total, page, key, Model::read)
    }

    /// Makes a key open nothing from now on. One that was revoked stays so since then.
    pub async fn revoke_key(&self, id: &KeyId, time: Timestamp) -> Result<(), StoreError> {
        let named = Named {
            kind: KIND,
            id: id.as_str(),
        };
        self.write(|step| async move {
            let revoked = Entity::update_many()
                .col_expr(Column::RevokedAt, Expr::value(micros(time)))
                .filter(Column::Id.eq(id.as_str()))
                .filter(Column::RevokedAt.is_null())
                .exec(&step)
                .await?;
            let known = revoked.rows_affected == 1
                || Entity::find_by_id(id.as_str()).one(&step).await?.is_some();
            match known {
                true => step.commit(()).await,
                false => Err(Fault::from(named.missing())),
            }
        })
        .await
    }
}
