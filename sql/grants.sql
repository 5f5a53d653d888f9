-- The last file: who may do what, and what a dump brings along.
--
-- sluice_owner owns everything and logs in as nobody; its SECURITY DEFINER functions are the only way to
-- write, INSERT of a withdrawal's intake columns aside. Roles are made if missing: they are the server's, not the database's.

do $$
declare
  v_role text;
begin
  foreach v_role in array array['sluice_owner', 'sluice_app', 'sluice_runner', 'sluice_approver', 'sluice_voucher', 'sluice_operator', 'sluice_auditor'] loop
    if not exists (select from pg_catalog.pg_roles r where r.rolname = v_role) then
      execute pg_catalog.format('create role %I nologin', v_role);
    end if;
  end loop;
end
$$;

-- Every object to the owner, and nothing to PUBLIC.
do $$
declare
  v_object record;
begin
  for v_object in
    select pg_catalog.format('alter table sluice.%I owner to sluice_owner', c.relname) as command
      from pg_catalog.pg_class c where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'r'
    union all
    select pg_catalog.format('alter view sluice.%I owner to sluice_owner', c.relname)
      from pg_catalog.pg_class c where c.relnamespace = 'sluice'::regnamespace and c.relkind = 'v'
    union all
    select pg_catalog.format('alter function %s owner to sluice_owner', p.oid::regprocedure)
      from pg_catalog.pg_proc p
     where p.pronamespace = 'sluice'::regnamespace and p.prosecdef
    union all
    select pg_catalog.format('revoke all on function %s from public', p.oid::regprocedure)
      from pg_catalog.pg_proc p
     where p.pronamespace = 'sluice'::regnamespace
  loop
    execute v_object.command;
  end loop;
end
$$;

grant usage on schema sluice to sluice_owner, sluice_app, sluice_runner, sluice_approver, sluice_voucher, sluice_operator, sluice_auditor;
grant execute on all functions in schema sluice to sluice_owner;

-- The pure functions, and what the type amount and the tables' checks need, for everybody who may see the schema.
grant execute on function
  sluice.parse_amount, sluice.format_amount, sluice.request_hash, sluice.address_is_valid, sluice.address_bytes, sluice.address_text,
  sluice.raw_data, sluice.tag, sluice.txid, sluice.decode_raw_data, sluice.signed_transaction, sluice.decode_block,
  sluice.can_transition, sluice.transitions, sluice.chart, sluice.chart_has,
  sluice.amount_in, sluice.amount_out, sluice.amount_recv, sluice.amount_send, sluice.amount_from_text, sluice.amount_from_numeric,
  sluice.amount_from_bigint, sluice.amount_from_int, sluice.amount_from_smallint,
  sluice.now, sluice.max_time_to_live_ms, sluice.is_account_name
to public;

-- An app inserts and asks; it sees what its own clients may.
grant insert (operation_id, to_address, amount, asset, account, requested_by) on sluice.withdrawals to sluice_app;
grant select (operation_id, state) on sluice.withdrawals to sluice_app;
grant execute on function
  sluice.submit(uuid, text, text, text, text, text), sluice.submit(jsonb), sluice.withdrawal
to sluice_app;

-- Accounts and the addresses of them are the app's to name, and an operator's.
grant execute on function
  sluice.set_custody, sluice.drop_custody, sluice.open_account, sluice.close_account, sluice.deposit, sluice.balance, sluice.route
to sluice_app, sluice_operator;

-- People approve and reject: by their own login, or through an app that vouches for them.
grant execute on function sluice.approve to sluice_approver, sluice_voucher;
grant execute on function sluice.reject to sluice_approver, sluice_voucher, sluice_operator;

-- A runner carries.
grant execute on function
  sluice.claim_batch, sluice.fenced_cas, sluice.record_signatures, sluice.record_broadcasts, sluice.release,
  sluice.observe_blocks, sluice.runner_state, sluice.workload
to sluice_runner;

-- An operator sets up, looks, pauses and cancels.
grant execute on function
  sluice.add_wallet, sluice.set_asset, sluice.set_setting, sluice.follow_from, sluice.pause, sluice.resume, sluice.cancel,
  sluice.set_approval_rule, sluice.drop_approval_rule, sluice.four_eyes
to sluice_operator;
grant execute on function sluice.fate, sluice.withdrawal, sluice.timeline, sluice.explain
to sluice_operator, sluice_auditor, sluice_approver;
grant execute on function sluice.balance, sluice.route, sluice.routed to sluice_operator, sluice_auditor;
grant execute on function sluice.missing_approvals to sluice_operator, sluice_auditor;
grant execute on function sluice.verify(), sluice.verify(timestamptz) to sluice_operator, sluice_auditor;
grant select on sluice.overview, sluice.stuck to sluice_operator, sluice_auditor;
grant select on sluice.settings, sluice.assets, sluice.wallets, sluice.pauses, sluice.changes, sluice.chain, sluice.observers, sluice.workers,
  sluice.custody, sluice.accounts, sluice.approval_rules
to sluice_operator;

-- An auditor sees everything and changes nothing.
grant select on all tables in schema sluice to sluice_auditor;

-- What pg_dump brings along: every table's rows, one statement each. The tables whose rows the install script writes fold a
-- restored row into the one there (defaults.sql).
select pg_catalog.pg_extension_config_dump('sluice.settings', '');
select pg_catalog.pg_extension_config_dump('sluice.assets', '');
select pg_catalog.pg_extension_config_dump('sluice.wallets', '');
select pg_catalog.pg_extension_config_dump('sluice.pauses', '');
select pg_catalog.pg_extension_config_dump('sluice.changes', '');
select pg_catalog.pg_extension_config_dump('sluice.withdrawals', '');
select pg_catalog.pg_extension_config_dump('sluice.events', '');
select pg_catalog.pg_extension_config_dump('sluice.envelopes', '');
select pg_catalog.pg_extension_config_dump('sluice.chain', '');
select pg_catalog.pg_extension_config_dump('sluice.blocks', '');
select pg_catalog.pg_extension_config_dump('sluice.observers', '');
select pg_catalog.pg_extension_config_dump('sluice.payments', '');
select pg_catalog.pg_extension_config_dump('sluice.custody', '');
select pg_catalog.pg_extension_config_dump('sluice.accounts', '');
select pg_catalog.pg_extension_config_dump('sluice.postings', '');
select pg_catalog.pg_extension_config_dump('sluice.holds', '');
select pg_catalog.pg_extension_config_dump('sluice.approval_rules', '');
select pg_catalog.pg_extension_config_dump('sluice.approvals', '');
select pg_catalog.pg_extension_config_dump('sluice.workers', '');
select pg_catalog.pg_extension_config_dump('sluice.unsettled', '');
select pg_catalog.pg_extension_config_dump('sluice.tallies', '');
