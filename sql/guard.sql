-- The guard. It holds for whoever writes, raw SQL included, and comes in pairs: a BEFORE ROW trigger (Rust, src/pg/guard.rs
-- and intake.rs) judges a row's path through the chart and sets its sequence and hash; an AFTER STATEMENT trigger, here, checks
-- the proofs that the steps ask for, set-based, and writes the log. A row and its log are so one thing.
--
-- Functions that work on sets pin jit off: what they ask is small, and looks large to a planner that knows nothing of the sets;
-- compiling it took ten times as long as running it. They pin sequential scans off, too: each row is found by its key, and a plan
-- that was made while a table was empty would go on to read the whole of it for each.
--
-- SQLSTATEs: SL010 no such step, SL011 never changes again, SL012 the proof is missing, SL013 nothing leaves the log,
-- SL014 the bytes, or the posting, do not pay what the row says, SL015 not the wallet's signature, SL021 not the next block.

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
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
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
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  other record;
  v_ours uuid[];
  v_credits text[];
begin
  -- What was proposed and not stored must mean the same as what stands. Read only now, after every wait for a concurrent
  -- insert is over: a look-up before the insert would lose the race.
  select p.operation_id, d.differs into other
    from sluice.intake_end(coalesce((select array_agg(f.operation_id) from fresh f), '{}')) p
    join sluice.withdrawals w on w.operation_id = p.operation_id
   cross join lateral (
     select concat_ws(
       ', ',
       case when w.to_address <> p.to_address then 'to_address' end,
       case when w.amount::text <> p.amount then 'amount' end,
       case when w.asset <> p.asset then 'asset' end,
       case when w.account is distinct from p.account then 'account' end) as differs
   ) d
   where d.differs <> ''
   order by p.operation_id;
  if found then
    raise exception 'operation_id: % stands already, with another %', other.operation_id, other.differs
      using errcode = 'SL001', hint = 'The first call holds. Use a new operation_id for another withdrawal.';
  end if;

  insert into sluice.events (operation_id, seq, from_state, to_state, at, worker_id, detail, hash)
  select f.operation_id, f.seq, null, f.state, f.changed_at, f.step_by, f.step_detail -> 0, f.hash
    from fresh f
   where sluice.intake_noted(f.operation_id);

  -- What is for an account of ours goes the ledger's way at once, as far as approvals allow.
  select array_agg(c.operation_id order by c.operation_id), array_agg(c.account order by c.operation_id) into v_ours, v_credits
    from sluice.custodians(array(select f.operation_id from fresh f where sluice.intake_noted(f.operation_id))) c;
  if cardinality(v_ours) > 0 then
    perform sluice.take_in(v_ours, v_credits, 'sluice');
  end if;
  return null;
end
$$;

-- Whether an envelope's fate on file says that it can never pay.
create function sluice.is_spent(fate text, receipt text) returns boolean
immutable parallel safe language sql
as $$ select case fate when 'dead' then true when 'included' then sluice.receipt_failed(receipt) else false end $$;

create function sluice.withdrawals_after_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  culprit record;
  v_over uuid[];
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
    select e.operation_id, e.from_state, e.to_state, n.rail is not distinct from 'internal' as internal,
           case
             when e.from_state = 'requested' and e.to_state = 'validated' then case when n.account is not null then 'hold' end
             when e.from_state = 'validated' and e.to_state = 'signing' then 'approvals'
             when e.to_state = 'signed' then case when n.rail is distinct from 'internal' then 'signature' end
             else sluice.stars_of(e.from_state::text, e.to_state::text)
           end as asks
      from entries e
      join after_update n on n.operation_id = e.operation_id
  )
  select s.* into culprit
    from steps s
   where case s.asks
           when '*' then (
             select count(*)
               from sluice.envelopes v
              where v.operation_id = s.operation_id and not sluice.is_spent(v.fate, v.receipt)) > 0
             or (s.internal and exists (select from sluice.postings p where p.posting_id = sluice.withdrawal_posting_id(s.operation_id)))
           when '**' then case
             when s.internal then (
               select p.kind = 'transfer' and p.operation_id = s.operation_id
                 from sluice.postings p
                where p.posting_id = sluice.withdrawal_posting_id(s.operation_id)) is not true
             else (
               -- Scalar, one in the other: each stays a look into an index.
               select count(*)
                 from sluice.envelopes v
                where v.operation_id = s.operation_id and v.fate = 'included' and v.receipt = 'SUCCESS'
                  and (select (p.block_number, p.receipt) = (v.block_number, v.receipt) from sluice.payments p where p.txid = v.txid)
                  and (select w.block_number = v.block_number
                              and (select max(b.number) from sluice.blocks b)
                                  >= v.block_number + coalesce(w.depth, (select a.depth from sluice.assets a where a.asset = w.asset))
                         from sluice.withdrawals w
                        where w.operation_id = v.operation_id)) = 0
             end
           -- Of the newest envelope: an older one's says nothing of what is to be sent.
           when 'signature' then (
             select v.signature is not null or v.fate is not distinct from 'included'
               from sluice.envelopes v
              where v.operation_id = s.operation_id
              order by v.attempt desc
              limit 1) is not true
           when 'hold' then (select h.ended is null from sluice.holds h where h.operation_id = s.operation_id) is not true
           when 'approvals' then (select p.given < p.needed from sluice.approvals_of(array[s.operation_id]) p)
           else false
         end;
  if found then
    raise exception 'withdrawal %: % -> % lacks its proof', culprit.operation_id, culprit.from_state, culprit.to_state
      using errcode = 'SL012',
            hint = case
                     when culprit.asks = '*' then 'Every envelope must be dead, or included with a failed result: only followed blocks can show that.'
                     when culprit.asks = '**' and culprit.internal then 'Its posting must be booked.'
                     when culprit.asks = '**' then 'A followed block must hold one of its envelopes with SUCCESS, at the asset''s depth.'
                     when culprit.asks = 'hold' then 'The funds of its account must be held.'
                     when culprit.asks = 'approvals' then 'As many people as the rules ask for must have approved it.'
                     else 'A signature must be on file.'
                   end;
  end if;

  -- Funds follow the row, whatever moved it.
  v_over := array(
    select n.operation_id
      from before_update o
      join after_update n on n.operation_id = o.operation_id
     where n.account is not null and n.state <> o.state and (n.state = 'confirmed' or n.state = 'failed' or n.state = 'rejected'));
  if cardinality(v_over) > 0 then
    perform sluice.end_holds(v_over);
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
