// Applies the files of migrations/ to the empty database that DATABASE_URL names.
// Only for scripts/prepare.sh, which needs the schema before the program that carries the migrations can be built.
import { readdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";

const pg = createRequire(new URL("./postgres/package.json", import.meta.url))("pg");
const folder = new URL("../migrations/", import.meta.url);
const client = new pg.Client(process.env.DATABASE_URL);
await client.connect();
// sqlx makes this table before the first migration, and a migration grants the service the right to read it.
await client.query(`create table _sqlx_migrations (version bigint primary key, description text not null,
  installed_on timestamptz not null default now(), success boolean not null, checksum bytea not null, execution_time bigint not null)`);
for (const name of readdirSync(folder).filter((name) => name.endsWith(".sql")).sort()) {
  try {
    await client.query(readFileSync(new URL(name, folder), "utf8"));
  } catch (error) {
    console.error(`migrations/${name}: ${error.message}`);
    process.exit(1);
  }
}
await client.end();
