-- The types that everything else is written in. The labels of sluice.state are those of the chart in src/core/state.rs,
-- in its order; a test holds the two together.

-- The Rust half reads texts as UTF-8. In a database of another encoding the first letter outside ASCII would be no text to it.
do $$
begin
  if pg_catalog.getdatabaseencoding() <> 'UTF8' then
    raise exception 'sluice needs a database in UTF8, and this one is in %', pg_catalog.getdatabaseencoding()
      using errcode = 'feature_not_supported', hint = 'create database … encoding ''UTF8'' template template0';
  end if;
end
$$;

create type sluice.state as enum (
  'requested', 'validated', 'signing', 'signed', 'broadcasting', 'broadcast', 'confirmed', 'failed', 'rejected'
);
comment on type sluice.state is 'Where a withdrawal stands; sluice.transitions() shows the steps between.';

create type sluice.rail as enum ('internal', 'external');
comment on type sluice.rail is 'Which way the money goes: over our own ledger, or over the chain.';

create type sluice.action as enum ('sign', 'broadcast');
comment on type sluice.action is 'What a task asks of a worker: to sign a digest, or to send bytes.';

create type sluice.task as (
  operation_id  uuid,
  fencing_token bigint,
  state         sluice.state,
  action        sluice.action,
  wallet        text,
  txid          bytea,
  raw_data      bytea,
  signature     bytea,
  expiration_ms bigint,
  attempt       int
);
comment on type sluice.task is 'One thing to do for one withdrawal. It counts only once the claim''s COMMIT is acknowledged.';

-- What claim_rows carries from the statement that writes the rows to the one that files their envelopes.
create type sluice.claimed as (
  operation_id  uuid,
  fencing_token bigint,
  state         sluice.state,
  step          text,
  wallet        text,
  txid          bytea,
  raw_data      bytea,
  signature     bytea,
  expiration_ms bigint,
  attempt       int,
  fee_limit_sun bigint,
  permission_id int
);

-- What a report comes back with, element by element.
create type sluice.filed as (
  operation_id  uuid,
  state         sluice.state,
  fencing_token bigint,
  action        sluice.action,
  wallet        text,
  txid          bytea,
  raw_data      bytea,
  signature     bytea,
  expiration_ms bigint,
  attempt       int
);

-- What a block's bytes say of it, as observe_blocks carries it between its statements.
create type sluice.header as (
  ord          int,
  number       bigint,
  id           bytea,
  parent_id    bytea,
  timestamp_ms bigint,
  root         bytea,
  root_holds   boolean,
  transactions int
);

-- The rows that functions return whose arguments have the same names: RETURNS TABLE could not.
create type sluice.submitted as (
  operation_id uuid,
  state        sluice.state,
  created      boolean,
  to_address   text,
  destination  text,
  amount       text,
  asset        text,
  amount_units numeric,
  account      text,
  txid         text
);

create type sluice.swapped as (
  operation_id  uuid,
  state         sluice.state,
  fencing_token bigint
);

create type sluice.client_view as (
  operation_id   uuid,
  state          sluice.state,
  to_address     text,
  destination    text,
  amount         text,
  asset          text,
  account        text,
  rail           sluice.rail,
  reason_code    text,
  reason         text,
  txid           text,
  block_number   bigint,
  failure_reason text,
  created_at     timestamptz,
  confirmed_at   timestamptz,
  -- Beyond the first shape: whose funds pay it, whose account is credited, by which posting; and what people said.
  from_account   text,
  to_account     text,
  posting_id     uuid,
  cancel_reason  text,
  missing_approvals text
);

-- A route, as sluice.route returns it. settlement: ledger, or chain, which depth belongs to.
create type sluice.route_view as (
  rail        sluice.rail,
  destination text,
  reason_code text,
  reason      text,
  account     text,
  settlement  text,
  depth       int
);

create type sluice.explanation as (
  operation_id uuid,
  state        sluice.state,
  stands       text,
  held_by      text,
  next_due     timestamptz,
  may_be_done  text
);

-- Completed in amount.sql, once its input function exists.
create type sluice.amount;
