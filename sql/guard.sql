-- The guard. It holds for whoever writes, raw SQL included, and comes in pairs: a BEFORE ROW trigger (Rust, src/pg/guard.rs
-- and intake.rs) judges a row's path through the chart and sets its sequence and hash; an AFTER STATEMENT trigger, here, checks
-- the proofs that the steps ask for, set-based, and writes the log. A row and its log are so one thing.
--
-- Functions that work on sets pin jit off: what they ask is small, and looks large to a planner that knows nothing of the sets;
-- compiling it took ten times as long as running it.
--
-- SQLSTATEs: SL010 no such step, SL011 never changes again, SL012 the proof is missing, SL013 nothing leaves the log,
-- SL014 the bytes do not pay what the row says, SL015 not the wallet's signature, SL021 not the next block.

-- Refuses what no row of a table may suffer.
create function sluice.refuse() returns trigger
language plpgsql
as $$
begin
  raise exception 'sluice.%: % is not possible: %', tg_table_name, lower(tg_op), tg_argv[0]
    using errcode = 'SL013', hint = 'Nothing leaves the log.';
end
$$;

------------------------------------------------------------------------------------------------------------- withdrawals

create function sluice.withdrawals_open_intake() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
begin
  perform sluice.intake_begin(
    coalesce(
      (select jsonb_agg(jsonb_build_object(
                'asset', a.asset, 'contract', a.contract, 'decimals', a.decimals,
                'minimum', a.minimum_units::text, 'maximum', a.maximum_units::text, 'version', a.version))
         from sluice.assets a),
      '[]'),
    coalesce((select array_agg(w.address) from sluice.wallets w), '{}')
  );
  return null;
end
$$;

create function sluice.withdrawals_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  other uuid;
begin
  -- What was proposed and not stored must mean the same as what stands. Read only now, after every wait for a concurrent
  -- insert is over: a look-up before the insert would lose the race.
  select p.operation_id into other
    from sluice.intake_end(coalesce((select array_agg(f.operation_id) from fresh f), '{}')) p
    join sluice.withdrawals w on w.operation_id = p.operation_id
   where (w.to_address, w.amount::text, w.asset) <> (p.to_address, p.amount, p.asset)
      or w.account is distinct from p.account;
  if found then
    raise exception 'operation_id: % stands already, with another meaning', other
      using errcode = 'SL001', hint = 'The first call holds. Use a new operation_id for another withdrawal.';
  end if;

  insert into sluice.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
  select f.operation_id, f.seq, null, f.state, f.changed_at, f.step_by, f.step_detail -> 0, f.hash
    from fresh f
   where sluice.intake_noted(f.operation_id);
  return null;
end
$$;

-- Whether an envelope's fate on file says that it can never pay.
create function sluice.is_spent(fate text, receipt text) returns boolean
immutable parallel safe language sql
as $$ select case fate when 'dead' then true when 'included' then sluice.receipt_failed(receipt) else false end $$;

create function sluice.withdrawals_after_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  culprit record;
begin
  -- No LIMIT here and below: where nothing is wrong every row is looked at, and a LIMIT would have the planner look at them in
  -- nested loops. Counts and not EXISTS, for the same reason: they stay index scans, a withdrawal at a time.
  with entries as (
    insert into sluice.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
    select n.operation_id, e.entry_seq, e.entry_from::sluice.state, e.entry_to::sluice.state, n.changed_at, n.step_by,
           coalesce(n.step_detail -> (e.entry_seq - o.seq - 1), '{}'), e.entry_hash
      from before_update o
      join after_update n on n.operation_id = o.operation_id
     cross join lateral sluice.entries_of(
             o.operation_id, o.seq, o.hash, o.state::text, n.step_path::text, n.changed_at, n.step_by, n.step_detail) e
     where n.seq > o.seq
    returning operation_id, from_state, to_state
  ),
  steps as (
    select e.operation_id, e.from_state, e.to_state,
           case when e.to_state = 'signed' then 'signature' else sluice.stars_of(e.from_state::text, e.to_state::text) end as asks
      from entries e
  )
  select s.* into culprit
    from steps s
   where case s.asks
           when '*' then (
             select count(*)
               from sluice.envelopes v
              where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 0
           when '**' then (
             select count(*)
               from sluice.envelopes v
               join sluice.payments p on p.txid = v.txid and p.block_number = v.block_number and p.receipt = v.receipt
               join sluice.withdrawals w on w.operation_id = v.operation_id and w.block_number = v.block_number
               join sluice.assets a on a.asset = w.asset
              where v.operation_id = s.operation_id and v.fate = 'included' and v.receipt = 'SUCCESS'
                and (select max(b.number) from sluice.blocks b) >= v.block_number + a.depth) = 0
           -- Of the newest envelope: an older one's says nothing of what is to be sent.
           when 'signature' then (
             select v.signature is not null or v.fate is not distinct from 'included'
               from sluice.envelopes v
              where v.operation_id = s.operation_id
              order by v.attempt desc
              limit 1) is not true
           else false
         end;
  if found then
    raise exception 'withdrawal %: % -> % lacks its proof', culprit.operation_id, culprit.from_state, culprit.to_state
      using errcode = 'SL012',
            hint = case culprit.asks
                     when '*' then 'Every envelope must be dead, or included with a failed result: only followed blocks can show that.'
                     when '**' then 'A followed block must hold one of its envelopes with SUCCESS, at the asset''s depth.'
                     else 'A signature must be on file.'
                   end;
  end if;

  insert into sluice.tallies (state, asset, withdrawals, units)
  select n.state, n.asset, count(*), sum(n.amount_units)
    from after_update n
   where n.state in ('confirmed', 'failed', 'rejected')
   group by n.state, n.asset;
  return null;
end
$$;

create trigger a_open_intake before insert on sluice.withdrawals
  for each statement execute function sluice.withdrawals_open_intake();
create trigger b_judge_intake before insert on sluice.withdrawals
  for each row execute function sluice.withdrawals_before_insert();
create trigger c_log_intake after insert on sluice.withdrawals
  referencing new table as fresh
  for each statement execute function sluice.withdrawals_after_insert();
create trigger b_judge_steps before update on sluice.withdrawals
  for each row execute function sluice.withdrawals_before_update();
create trigger c_log_steps after update on sluice.withdrawals
  referencing old table as before_update new table as after_update
  for each statement execute function sluice.withdrawals_after_update();
create trigger never_removed before delete or truncate on sluice.withdrawals
  for each statement execute function sluice.refuse('an operation_id stands for ever');

------------------------------------------------------------------------------------------------------------------ events

create function sluice.events_before_insert() returns trigger
language plpgsql
as $$
begin
  -- Entries come from the guard's own trigger, or from a dump that a superuser restores.
  if pg_catalog.pg_trigger_depth() = 1
     and not (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user) then
    raise exception 'sluice.events: only the guard writes the log' using errcode = 'SL013';
  end if;
  return null;
end
$$;

create trigger only_the_guard_writes before insert on sluice.events
  for each statement execute function sluice.events_before_insert();
create trigger never_changed before update or delete or truncate on sluice.events
  for each statement execute function sluice.refuse('the log is append-only');

--------------------------------------------------------------------------------------------------------------- envelopes

create function sluice.envelopes_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  culprit record;
begin
  select f.operation_id,
         case
           when w.operation_id is null then 'there is no such withdrawal'
           when w.state <> 'signing' then 'the withdrawal is ' || w.state || ', and envelopes are built in signing'
           when w.wallet is distinct from f.wallet then 'the withdrawal is paid from another wallet'
           when f.attempt <> w.attempt then 'it is not the withdrawal''s attempt ' || w.attempt
           when f.fate is not null or f.signature is not null then 'an envelope begins unsigned, and without a fate'
           when b.number is null then 'its reference is no followed block'
           when sluice.slot_of(b.timestamp_ms) <> f.slot or prior.timestamp_ms >= sluice.slot_begins_ms(f.slot)
             then 'its reference is not the first followed block of its slot'
           when f.slot <= (select max(v.slot) from sluice.envelopes v where v.operation_id = f.operation_id and v.attempt < f.attempt)
             then 'its slot is not later than that of the envelope before'
           when exists (select from sluice.envelopes v
                         where v.operation_id = f.operation_id and v.txid <> f.txid
                           and not sluice.is_spent(v.fate, v.receipt))
             then 'another envelope of the withdrawal can still pay it'
           when a.version <> w.asset_version then 'the asset has changed since intake'
           when f.permission_id <> l.permission_id then 'its permission is not the wallet''s'
           when f.expiration_ms <> b.timestamp_ms + f.time_to_live_ms then 'its expiration is not its reference''s time plus its time to live'
           when f.raw_data is distinct from sluice.raw_data(
                  f.wallet, a.contract, w.to_address, w.amount_units, b.number, b.id, f.expiration_ms, b.timestamp_ms,
                  f.fee_limit_sun, w.operation_id, f.permission_id)
             then 'its bytes do not pay what the withdrawal says'
         end as fault
    into culprit
    from fresh f
    left join sluice.withdrawals w on w.operation_id = f.operation_id
    left join sluice.assets a on a.asset = w.asset
    left join sluice.wallets l on l.address = f.wallet
    left join sluice.blocks b on b.number = f.ref_block_number
    left join sluice.blocks prior on prior.number = f.ref_block_number - 1
   where sluice.is_fresh(tg_table_name, f.txid)
   order by 2 nulls last;
  if culprit.fault is not null then
    raise exception 'envelope of withdrawal %: %', culprit.operation_id, culprit.fault
      using errcode = 'SL014', hint = 'sluice.claim_batch builds envelopes.';
  end if;
  perform sluice.forget_fresh(tg_table_name, (select array_agg(f.txid) from fresh f));
  return null;
end
$$;

create function sluice.envelopes_after_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  culprit record;
begin
  -- One pass over the statement's rows: the bytes and what they were built from never change, signature and fate are written
  -- once, and each with its proof.
  select t.txid, t.fault, t.code into culprit
    from (
      select o.txid, f.code, f.fault
        from before_update o
        left join after_update n on n.txid = o.txid
        left join sluice.wallets l on l.address = n.wallet
       cross join lateral (
         select 'SL011' as code, 'what it is never changes' as fault
          where (n.operation_id, n.attempt, n.wallet, n.slot, n.ref_block_number, n.time_to_live_ms, n.fee_limit_sun,
                 n.permission_id, n.expiration_ms, n.raw_data, n.built_at)
                is distinct from
                (o.operation_id, o.attempt, o.wallet, o.slot, o.ref_block_number, o.time_to_live_ms, o.fee_limit_sun,
                 o.permission_id, o.expiration_ms, o.raw_data, o.built_at)
         union all
         select 'SL011', 'its signature is written once'
          where o.signature is not null and n.signature is distinct from o.signature
         union all
         select 'SL011', 'its fate is written once'
          where o.fate is not null
            and (n.fate, n.receipt, n.block_number, n.first_block, n.last_block)
                is distinct from (o.fate, o.receipt, o.block_number, o.first_block, o.last_block)
         union all
         select 'SL015', 'not the wallet''s signature: ' || sluice.signature_fault(l.signer, l.signer_address, n.txid, n.signature)
          where o.signature is null and n.signature is not null
            and sluice.signature_fault(l.signer, l.signer_address, n.txid, n.signature) is not null
         union all
         select 'SL012', 'no followed block holds it as said'
          where o.fate is null and n.fate = 'included'
            and (select count(*)
                   from sluice.payments p
                   join sluice.blocks b on b.number = p.block_number
                  where p.txid = n.txid and p.block_number = n.block_number and p.receipt = n.receipt) = 0
         union all
         select 'SL012', 'the followed blocks do not prove it dead'
          where o.fate is null and n.fate = 'dead'
            and (select count(*)
                   from sluice.coverage_of(n.ref_block_number, n.expiration_ms) c
                  where n.first_block = n.ref_block_number and n.last_block = c.closing
                    and (select count(*) from sluice.payments p where p.txid = n.txid) = 0
                    and sluice.envelope_fate(
                          n.expiration_ms, n.ref_block_number, c.first_followed, c.last_followed, c.closing, c.closing_ms,
                          c.margin, null, null) = 'dead') = 0
       ) f
    ) t;
  if found then
    raise exception 'envelope %: %', encode(culprit.txid, 'hex'), culprit.fault using errcode = culprit.code;
  end if;
  return null;
end
$$;

-- The followed blocks as seen from an envelope: where they begin, the newest that enough observers filed, and the first
-- stamped at or past its expiration. One observer is any: what is on file counts. Several are logins that each filed every
-- block after the reference.
create function sluice.coverage_of(reference bigint, expiration_ms bigint)
returns table (first_followed bigint, last_followed bigint, closing bigint, closing_ms bigint, margin bigint)
stable language sql
as $$
  select c.first_number,
         case
           when s.observers = 1 then (select max(t.number) from sluice.blocks t)
           else (select o.last_number
                   from sluice.observers o
                  where o.first_number <= coverage_of.reference + 1
                  order by o.last_number desc
                 offset s.observers - 1
                  limit 1)
         end,
         b.number, b.timestamp_ms, s.margin_blocks::bigint
    from sluice.chain c
   cross join sluice.settings s
    left join lateral (
      select number, timestamp_ms
        from sluice.blocks
       where timestamp_ms >= coverage_of.expiration_ms
       order by timestamp_ms
       limit 1
    ) b on true
$$;

create trigger b_mark_fresh before insert on sluice.envelopes
  for each row execute function sluice.mark_fresh('built_at');
create trigger c_check_bytes after insert on sluice.envelopes
  referencing new table as fresh
  for each statement execute function sluice.envelopes_after_insert();
create trigger c_check_fate after update on sluice.envelopes
  referencing old table as before_update new table as after_update
  for each statement execute function sluice.envelopes_after_update();
create trigger never_removed before delete or truncate on sluice.envelopes
  for each statement execute function sluice.refuse('an envelope may be paid as long as the chain lives');

------------------------------------------------------------------------------------------------------ blocks and payments

create function sluice.blocks_before_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  parent record;
begin
  if new.followed_at is not null then
    return new;
  end if;
  new.followed_at := sluice.now();
  select b.number, b.id, b.timestamp_ms into parent from sluice.blocks b order by b.number desc limit 1;
  if not found then
    return new;
  end if;
  if new.number <> parent.number + 1 then
    raise exception 'block %: the next to follow is %', new.number, parent.number + 1 using errcode = 'SL021';
  end if;
  if new.parent_id <> parent.id then
    raise exception 'block %: its parent is %, and block % is %', new.number, encode(new.parent_id, 'hex'), parent.number,
      encode(parent.id, 'hex') using errcode = 'SL021';
  end if;
  if new.timestamp_ms <= parent.timestamp_ms then
    raise exception 'block %: its time does not rise', new.number using errcode = 'SL021';
  end if;
  return new;
end
$$;

create function sluice.payments_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  culprit record;
begin
  select f.txid into culprit
    from fresh f
    left join sluice.envelopes v on v.txid = f.txid
    left join sluice.blocks b on b.number = f.block_number
   where sluice.is_fresh(tg_table_name, f.txid)
     and (v.txid is null or b.number is null or f.operation_id is distinct from v.operation_id or f.wallet <> v.wallet
          or f.block_number <= v.ref_block_number);
  if found then
    raise exception 'payment %: no envelope of ours, or no followed block after its reference', encode(culprit.txid, 'hex')
      using errcode = 'SL012';
  end if;
  perform sluice.forget_fresh(tg_table_name, (select array_agg(f.txid) from fresh f));
  return null;
end
$$;

create trigger b_follow before insert on sluice.blocks
  for each row execute function sluice.blocks_before_insert();
create trigger never_changed before update or delete or truncate on sluice.blocks
  for each statement execute function sluice.refuse('followed blocks are irreversible');
create trigger b_mark_fresh before insert on sluice.payments
  for each row execute function sluice.mark_fresh('seen_at');
create trigger c_check_payment after insert on sluice.payments
  referencing new table as fresh
  for each statement execute function sluice.payments_after_insert();
create trigger never_changed before update or delete or truncate on sluice.payments
  for each statement execute function sluice.refuse('what a solid block shows stays so');

create trigger never_changed before update or delete or truncate on sluice.wallets
  for each statement execute function sluice.refuse('wallets are only ever added');
create trigger never_changed before update or delete or truncate on sluice.chain
  for each statement execute function sluice.refuse('the chain is named once');
create trigger never_changed before update or delete or truncate on sluice.changes
  for each statement execute function sluice.refuse('the log is append-only');
create trigger never_removed before delete or truncate on sluice.pauses
  for each statement execute function sluice.refuse('the log is append-only');

------------------------------------------------------------------------------------------------------ settings and assets

-- A restored row folds into the one that the install script wrote: else its whole COPY would be lost to a duplicate key.
create function sluice.settings_before_insert() returns trigger
language plpgsql
as $$
begin
  update sluice.settings set
    time_to_live = new.time_to_live, freshness = new.freshness, margin_blocks = new.margin_blocks, lease = new.lease,
    resend = new.resend, attempts = new.attempts, observers = new.observers, changed_by = new.changed_by,
    change_reason = new.change_reason;
  return case when found then null else new end;
end
$$;

create function sluice.assets_before_insert() returns trigger
language plpgsql
as $$
begin
  update sluice.assets set
    contract = new.contract, decimals = new.decimals, minimum_units = new.minimum_units,
    maximum_units = new.maximum_units, fee_limit_sun = new.fee_limit_sun, depth = new.depth,
    reverts_on_failure = new.reverts_on_failure, version = new.version, changed_by = new.changed_by
   where asset = new.asset;
  return case when found then null else new end;
end
$$;

-- Every change is logged, by whatever way it comes; folding a dump's row is none.
create function sluice.log_change() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
begin
  if pg_trigger_depth() = 1 then
    insert into sluice.changes (what, before, after, reason)
    values (tg_table_name, to_jsonb(old), to_jsonb(new), to_jsonb(new) ->> 'change_reason');
  end if;
  return null;
end
$$;

-- A new version whenever base units or the token come to mean something else, whoever changes them.
create function sluice.assets_before_update() returns trigger
language plpgsql
as $$
begin
  if pg_catalog.pg_trigger_depth() = 1 then
    new.version := old.version + (case when (new.contract, new.decimals) is distinct from (old.contract, old.decimals) then 1 else 0 end);
  end if;
  return new;
end
$$;

create trigger a_fold before insert on sluice.settings for each row execute function sluice.settings_before_insert();
create trigger c_log after update on sluice.settings for each row execute function sluice.log_change();
create trigger never_removed before delete or truncate on sluice.settings
  for each statement execute function sluice.refuse('settings have one row');
create trigger a_fold before insert on sluice.assets for each row execute function sluice.assets_before_insert();
create trigger b_version before update on sluice.assets for each row execute function sluice.assets_before_update();
create trigger c_log after update on sluice.assets for each row execute function sluice.log_change();
create trigger never_removed before delete or truncate on sluice.assets
  for each statement execute function sluice.refuse('withdrawals name it');

insert into sluice.settings default values;
insert into sluice.assets (asset, contract, decimals, minimum_units, maximum_units, fee_limit_sun, depth, reverts_on_failure)
values ('USDT-TRC20', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, 1, 1000000000000, 100000000, 0, true);

------------------------------------------------------------------------------------------------------ synchronous commits

-- The commits that put an envelope or an intent on file must survive a crash of the server whatever synchronous_commit the
-- caller set. Deferred, this runs as the last thing before the commit record is written; a SET clause of a function would be
-- undone before that, so it has none. One row a batch fires it.
create function sluice.commit_synchronously() returns trigger
language plpgsql
as $$
begin
  if pg_catalog.current_setting('synchronous_commit') in ('off', 'local') then
    perform pg_catalog.set_config('synchronous_commit', 'on', true);
  end if;
  return null;
end
$$;

create constraint trigger commit_synchronously after insert or update on sluice.workers
  deferrable initially deferred
  for each row execute function sluice.commit_synchronously();
