//! Brings the tables up to date, one process at a time.

use super::fault;
use argosy_store::engine::Error;
use argosy_store::failpoint;
use tokio_postgres::Client;

/// How to come from each schema to the next; the schema's number is how many have run.
const MIGRATIONS: &[&str] = &[include_str!("../../schema/1.sql")];

/// Any number that no other program is likely to lock: "argosy", and which of our locks.
const MIGRATION_LOCK: i64 = 0x6172_676f_7379_0001;

/// All steps in one transaction, under a lock that ends with it: a process killed midway leaves
/// the schema as it was, and whoever waits goes on. Answers with a name for this process that no
/// other has.
pub(super) async fn migrate(client: &Client) -> Result<String, Error> {
    migrate_to(client, MIGRATIONS).await?;
    let name = client.query_one("SELECT gen_random_uuid()::text", &[]).await;
    name.and_then(|row| row.try_get(0)).map_err(fault::meaning)
}

async fn migrate_to(client: &Client, migrations: &[&str]) -> Result<(), Error> {
    let begin = format!(
        "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL statement_timeout = 0;
         SELECT pg_advisory_xact_lock({MIGRATION_LOCK})"
    );
    client.batch_execute(&begin).await.map_err(fault::meaning)?;
    let version = version(client).await.map_err(fault::meaning)?;
    let known = migrations.len();
    if known < version {
        return Err(Error::Refused(format!(
            "the database was written by a newer argosy (schema {version}, this build knows \
             {known}); start the newer version, or restore a backup"
        )));
    }
    if version < known {
        run(client, migrations, version).await.map_err(fault::meaning)?;
        failpoint::hit("migrate.before_commit");
    }
    client.batch_execute("COMMIT").await.map_err(fault::meaning)
}

async fn version(client: &Client) -> Result<usize, tokio_postgres::Error> {
    let exists = "SELECT to_regclass('argosy.version') IS NOT NULL";
    if !client.query_one(exists, &[]).await?.try_get::<_, bool>(0)? {
        return Ok(0);
    }
    let row = client.query_one("SELECT version FROM argosy.version", &[]).await?;
    Ok(usize::try_from(row.try_get::<_, i32>(0)?).unwrap_or(usize::MAX))
}

async fn run(
    client: &Client,
    migrations: &[&str],
    version: usize,
) -> Result<(), tokio_postgres::Error> {
    if version == 0 {
        let first = "CREATE SCHEMA IF NOT EXISTS argosy;
                     CREATE TABLE argosy.version (version integer NOT NULL);
                     INSERT INTO argosy.version VALUES (0);";
        client.batch_execute(first).await?;
    }
    for step in migrations.iter().skip(version) {
        client.batch_execute(step).await?;
    }
    let done = format!("UPDATE argosy.version SET version = {}", migrations.len());
    client.batch_execute(&done).await
}
