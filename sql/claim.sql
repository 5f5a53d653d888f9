-- claim_batch: leases what is due and does all that needs no network: validates, routes, places the hold, chooses the wallet, builds
-- the envelope. What is left is a task: sign this digest, or send these bytes. A fixed number of statements, whatever the batch.

-- Which wallets an asset's withdrawals choose among: all of them, or a pool of its own where some are paused for it alone. Without
-- a SET clause, so that it is inlined.
create function sluice.pool_of(asset text) returns table (pool text)
language sql stable
as $$
  select case
           when exists (select from sluice.pauses p where p.resumed_at is null and p.wallet is not null and p.asset = pool_of.asset) then pool_of.asset
           else ''
         end
$$;

-- Claims these rows, which the caller holds locked.
create function sluice.claim_rows(worker_id text, ids uuid[], lease interval) returns setof sluice.task
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := sluice.now();
  v_settings sluice.settings;
  v_tip sluice.blocks;
  v_reference sluice.blocks;
  v_claimed sluice.claimed[];
  v_fresh uuid[];
  v_refused uuid[];
  v_why text[];
  v_unapproved uuid[] := '{}';
begin
  select * into v_settings from sluice.settings;
  select * into v_tip from sluice.blocks order by number desc limit 1;
  select * into v_reference from sluice.blocks
   where timestamp_ms >= sluice.slot_begins_ms(sluice.slot_of(v_tip.timestamp_ms)) order by timestamp_ms limit 1;

  -- What was never built is held against the lists, limits, funds and rules of now, and its hold placed.
  v_fresh := array(
    select w.operation_id from sluice.withdrawals w
     where w.operation_id = any (claim_rows.ids) and w.attempt = 0);
  if cardinality(v_fresh) > 0 then
    select coalesce(array_agg(r.operation_id), '{}'), coalesce(array_agg(r.why), '{}') into v_refused, v_why
      from sluice.refusals(v_fresh, array_fill(null::text, array[cardinality(v_fresh)])) r;
    v_fresh := array(
      select w.operation_id from sluice.withdrawals w
       where w.operation_id = any (v_fresh) and (w.state = 'requested' or w.state = 'validated')
         and w.operation_id not in (select unnest(v_refused)));
    perform sluice.place_holds(v_fresh);
    if exists (select from sluice.approval_rules r where r.approvals > 0) then
      v_unapproved := array(select p.operation_id from sluice.approvals_of(v_fresh) p where p.given < p.needed);
    end if;
  end if;

  -- Each part is made once: planned into one another on a wrong guess of their sizes, they would be made once a row.
  with facts as materialized (
    select w.operation_id, w.state, w.seq, w.to_address, w.destination, w.amount_units, w.asset, w.wallet, w.attempt, w.due_at, w.sent_ms,
           w.rail, w.cancel_reason is not null as cancelled,
           w.asset_version <> a.version as asset_changed,
           w.operation_id in (select unnest(v_unapproved)) as unapproved,
           a.contract, a.fee_limit_sun, a.depth,
           e.txid, e.slot, e.wallet as built_from, e.raw_data, e.signature, e.expiration_ms,
           e.txid is null or sluice.is_spent(e.fate, e.receipt) as spent,
           -- Nobody can do anything for it until blocks decide.
           e.fate is not null or e.expiration_ms <= v_tip.timestamp_ms as over,
           sluice.is_paused(w.wallet, w.asset) as paused,
           sluice.next_step(
             w.state::text, w.attempt, e.attempt, e.expiration_ms, e.fate is null,
             sluice.is_spent(e.fate, e.receipt),
             e.signature is not null, w.sent_ms, v_tip.timestamp_ms,
             (extract(epoch from v_settings.resend) * 1000)::bigint, sluice.is_paused(w.wallet, w.asset), w.cancel_reason is not null) as step
      from sluice.withdrawals w
      join sluice.assets a on a.asset = w.asset
      left join lateral (
        select * from sluice.envelopes v where v.operation_id = w.operation_id order by v.attempt desc limit 1
      ) e on true
     where w.operation_id = any (claim_rows.ids)
  ),
  refused as materialized (
    select r.operation_id, r.why from unnest(v_refused, v_why) r (operation_id, why)
    union all
    select f.operation_id, 'the asset''s contract or decimals changed since it was asked for'
      from facts f
     where f.step = 'build' and f.spent and f.asset_changed and f.attempt > 0
  ),
  to_build as materialized (
    select f.*,
           row_number() over (partition by f.wallet order by f.due_at, f.operation_id) as place,
           sluice.build_hold(
             f.spent, f.paused, v_tip.timestamp_ms, (extract(epoch from v_now) * 1000)::bigint,
             (extract(epoch from v_settings.freshness) * 1000)::bigint, f.slot, 1) as hold
      from facts f
     where f.step = 'build' and not f.unapproved and f.operation_id not in (select r.operation_id from refused r)
  ),
  -- A wallet that is paused for one asset pays the others: withdrawals of such an asset choose among the wallets left to it.
  pools as materialized (
    select p.pool, count(*) as size
      from to_build b
     cross join lateral sluice.pool_of(b.asset) p (pool)
     where b.wallet is null and b.hold is null
     group by p.pool
  ),
  rooms as materialized (
    -- Room in each wallet, after those that are already its own.
    select l.address, l.permission_id,
           l.live_window - (select count(*) from sluice.envelopes v where v.wallet = l.address and v.fate is null) as room,
           (select count(*) from to_build b where b.wallet = l.address and b.hold is null) as own
      from sluice.wallets l
     where not sluice.is_paused(l.address, null)
  ),
  seats as materialized (
    -- The wallet with most room first, then the lowest address by its bytes, so that twins agree whatever their databases
    -- collate by; each seat taken leaves one less. What other pools may take is left to them.
    select p.pool, r.address,
           row_number() over (partition by p.pool order by r.room - r.own - g.taken desc, r.address collate "C") as place
      from pools p
      join rooms r on p.pool = '' or not sluice.is_paused(r.address, p.pool)
     cross join lateral generate_series(
       0, least(r.room - r.own - (select coalesce(sum(q.size), 0) from pools q where q.pool <> p.pool), p.size)::bigint - 1) as g (taken)
  ),
  seated as materialized (
    select b.operation_id, b.hold, coalesce(b.wallet, s.address) as pays, l.permission_id,
           case
             when b.hold is not null then b.hold
             when b.wallet is not null and l.address is null then 'paused'
             when b.wallet is not null and b.place > l.room then 'window_full'
             when b.wallet is null and s.address is null then
               case when b.asset = any (sluice.startable_assets()) then 'window_full' else 'paused' end
           end as held_by
      from (
        select t.*, p.pool,
               row_number() over (partition by t.wallet is null, t.hold is null, p.pool order by t.due_at, t.operation_id) as rank
          from to_build t
         cross join lateral sluice.pool_of(t.asset) p (pool)
      ) b
      left join seats s on b.wallet is null and b.hold is null and s.pool = b.pool and s.place = b.rank
      left join rooms l on l.address = coalesce(b.wallet, s.address)
  ),
  built as materialized (
    select f.operation_id, d.pays, d.permission_id,
           v_reference.timestamp_ms + (extract(epoch from v_settings.time_to_live) * 1000)::bigint as expiration_ms,
           sluice.raw_data(
             d.pays, f.contract, f.to_address, f.amount_units, v_reference.number, v_reference.id,
             v_reference.timestamp_ms + (extract(epoch from v_settings.time_to_live) * 1000)::bigint,
             v_reference.timestamp_ms, f.fee_limit_sun, f.operation_id, d.permission_id) as raw_data
      from facts f
      join seated d on d.operation_id = f.operation_id and d.held_by is null
  ),
  outcome as materialized (
    select f.operation_id, f.state as was, f.seq, f.attempt, f.sent_ms, f.txid as old_txid, f.signature, f.fee_limit_sun, f.unapproved,
           -- The route is decided once, when it is first looked at and nothing refuses it.
           f.rail is null and f.attempt = 0 and r.why is null and (f.state = 'requested' or b.raw_data is not null) as routes, f.destination, t.reason_code, t.reason, t.settlement, t.depth,
           case when r.why is not null then 'refuse' when b.raw_data is not null then 'build' when f.step = 'build' then 'wait' else f.step end as step,
           r.why, d.held_by, b.pays, b.permission_id,
           coalesce(b.expiration_ms, f.expiration_ms) as expiration_ms,
           coalesce(b.raw_data, f.raw_data) as raw_data,
           coalesce(sluice.txid(b.raw_data), f.txid) as txid,
           f.step = 'wait' and (f.over or f.cancelled) as waits_for_blocks,
           case
             when f.unapproved then 'approvals'
             when f.cancelled then 'cancelled'
             when f.step = 'wait' and f.paused then 'paused'
             else d.held_by
           end as holds
      from facts f
      left join refused r on r.operation_id = f.operation_id
      left join seated d on d.operation_id = f.operation_id
      left join built b on b.operation_id = f.operation_id
     cross join lateral sluice.decide_route(f.destination, null, f.depth) t
  ),
  stepped as materialized (
    select o.*,
           case
             when o.step = 'refuse' then array[case when o.was = 'signing' then 'failed' else 'rejected' end]
             when o.step = 'build' and o.was = 'requested' then array['validated', 'signing']
             when o.step = 'build' then array['signing']
             when o.step = 'send' and o.was = 'signed' then array['broadcasting']
             when o.routes and o.was = 'requested' then array['validated']
             else '{}'
           end::sluice.state[] as path,
           case when o.routes then jsonb_build_array(sluice.route_detail('external', o.destination, o.reason_code, o.reason, null, o.settlement, o.depth)) end as decision
      from outcome o
  ),
  written as (
    update sluice.withdrawals w set
      state = coalesce(o.path[cardinality(o.path)], o.was),
      step_seq = w.seq,
      step_path = o.path,
      step_detail = case
                      when o.step = 'refuse' then
                        jsonb_build_array(
                          jsonb_build_object('reason', o.why)
                          || coalesce((select v.evidence from sluice.evidence_of(array[o.operation_id]) v), '{}'))
                      when o.step = 'build' then
                        case when o.was = 'requested' then o.decision else '[]' end
                        || jsonb_build_array(
                             -- What was walked past its routing by hand is routed with its first envelope.
                             case when o.routes and o.was <> 'requested' then o.decision -> 0 else '{}' end
                             || jsonb_build_object('txid', encode(o.txid, 'hex'), 'attempt', o.attempt + 1, 'wallet', o.pays, 'expiration_ms', o.expiration_ms, 'ref_block_number', v_reference.number))
                      when o.step = 'send' and o.was = 'signed' then jsonb_build_array(jsonb_build_object('txid', encode(o.txid, 'hex')))
                      else o.decision
                    end,
      step_by = claim_rows.worker_id,
      failure_reason = case when o.step = 'refuse' then o.why end,
      rail = case when o.routes then 'external' else w.rail end,
      reason_code = case when o.routes then o.reason_code else w.reason_code end,
      reason = case when o.routes then o.reason else w.reason end,
      depth = case when o.routes then o.depth else w.depth end,
      wallet = coalesce(w.wallet, o.pays),
      attempt = w.attempt + case when o.step = 'build' then 1 else 0 end,
      accepted = w.accepted and o.step <> 'build',
      sent_ms = case when o.step = 'build' then null else w.sent_ms end,
      refusal = case when o.step = 'build' then null else w.refusal end,
      held_by = o.holds,
      fencing_token = w.fencing_token + case when o.step in ('build', 'sign', 'send') then 1 else 0 end,
      leased_by = case when o.step in ('build', 'sign', 'send') then claim_rows.worker_id end,
      due_at = case
                 when o.step in ('build', 'sign', 'send') then v_now + claim_rows.lease
                 when o.unapproved then null
                 when o.waits_for_blocks then v_now + v_settings.resend
                 when o.step = 'wait' and o.held_by is null and o.sent_ms is not null then
                   v_now + greatest(interval '1 second', v_settings.resend - interval '1 millisecond' * greatest(0, coalesce(v_tip.timestamp_ms, 0) - o.sent_ms))
                 else v_now + interval '5 seconds'
               end
      from stepped o
     where w.operation_id = o.operation_id and w.operation_id = any (claim_rows.ids)
    returning w.operation_id, w.fencing_token, w.state, o.step, w.wallet, o.txid, o.raw_data, o.signature, o.expiration_ms, w.attempt,
              o.fee_limit_sun, o.permission_id
  )
  select array_agg((t.operation_id, t.fencing_token, t.state, t.step, t.wallet, t.txid, t.raw_data, t.signature, t.expiration_ms,
                    t.attempt, t.fee_limit_sun, t.permission_id)::sluice.claimed order by t.operation_id)
    into v_claimed
    from written t
   where t.step in ('build', 'sign', 'send');

  insert into sluice.envelopes (
    txid, operation_id, attempt, wallet, slot, ref_block_number, time_to_live_ms, fee_limit_sun, permission_id, expiration_ms, raw_data)
  select c.txid, c.operation_id, c.attempt, c.wallet, sluice.slot_of(v_reference.timestamp_ms), v_reference.number,
         (extract(epoch from v_settings.time_to_live) * 1000)::bigint, c.fee_limit_sun, c.permission_id, c.expiration_ms, c.raw_data
    from unnest(v_claimed) c
   where c.step = 'build';

  return query
  select c.operation_id, c.fencing_token, c.state,
         case when c.step = 'send' then 'broadcast' else 'sign' end::sluice.action,
         c.wallet, c.txid, c.raw_data, case when c.step = 'send' then c.signature end, c.expiration_ms, c.attempt
    from unnest(v_claimed) c;
end
$$;

-- Picks by rail: what custody says is an account's of ours goes the ledger's way, to its end; the rest becomes tasks.
create function sluice.claim_all(worker_id text, ids uuid[], lease interval) returns setof sluice.task
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_free uuid[] := claim_all.ids;
  v_new uuid[];
  v_credits text[];
  v_ours uuid[];
  v_open text[];
  v_busy uuid[];
begin
  -- Whoever takes a withdrawal in holds its account for a moment, and is waited for; a forgotten transaction is not: what needs the
  -- account is left to a later claim.
  if exists (select from sluice.withdrawals w where w.operation_id = any (claim_all.ids) and w.account is not null and w.attempt = 0) then
    begin
      perform sluice.lock_accounts_of(claim_all.ids);
    exception when lock_not_available then
      v_free := sluice.lock_what_is_free(claim_all.ids);
      update sluice.withdrawals w set held_by = 'account_busy', due_at = sluice.now() + interval '1 second', leased_by = null
       where w.operation_id = any (claim_all.ids) and w.operation_id not in (select unnest(v_free));
    end;
  end if;
  select coalesce(array_agg(c.operation_id order by c.operation_id), '{}'), array_agg(c.account order by c.operation_id) into v_new, v_credits
    from sluice.custodians(array(
           select w.operation_id from sluice.withdrawals w where w.operation_id = any (v_free) and w.rail is null and w.attempt = 0)) c;
  if cardinality(v_new) > 0 then
    v_open := array(
      select a.asset || chr(10) || a.account
        from sluice.accounts a
       where (a.account, a.asset) in (
         select g.credit, w.asset
           from unnest(v_new, v_credits) g (operation_id, credit)
           join sluice.withdrawals w on w.operation_id = g.operation_id)
       order by a.asset, a.account
         for no key update skip locked);
    v_busy := array(
      select g.operation_id
        from unnest(v_new, v_credits) g (operation_id, credit)
        join sluice.withdrawals w on w.operation_id = g.operation_id
       where w.asset || chr(10) || g.credit not in (select unnest(v_open))
         and exists (select from sluice.accounts a where a.account = g.credit and a.asset = w.asset));
    update sluice.withdrawals w set held_by = 'account_busy', due_at = sluice.now() + interval '1 second', leased_by = null
     where w.operation_id = any (v_busy);
    v_free := array(select u.id from unnest(v_free) u (id) where u.id not in (select unnest(v_busy)));
    select coalesce(array_agg(g.operation_id order by g.operation_id), '{}'), array_agg(g.credit order by g.operation_id) into v_new, v_credits
      from unnest(v_new, v_credits) g (operation_id, credit)
     where g.operation_id not in (select unnest(v_busy));
  end if;
  if cardinality(v_new) > 0 then
    perform sluice.take_in(v_new, v_credits, claim_all.worker_id);
  end if;
  v_ours := array(
    select w.operation_id from sluice.withdrawals w
     where w.operation_id = any (v_free) and w.rail = 'internal' and w.state = 'validated' and w.operation_id not in (select unnest(v_new)));
  if cardinality(v_ours) > 0 then
    perform sluice.hand_over(v_ours, claim_all.worker_id);
  end if;
  v_ours := v_ours || v_new;
  return query
  select * from sluice.claim_rows(
    claim_all.worker_id, array(select u.id from unnest(v_free) u (id) where u.id not in (select unnest(v_ours))), claim_all.lease);
end
$$;

create function sluice.claim_batch(worker_id text, batch_size int default 100, lease interval default null) returns setof sluice.task
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_now timestamptz := sluice.now();
  v_far timestamptz := v_now + interval '1 millisecond' * sluice.longest_wait_ms();
  v_lease interval;
  v_ids uuid[];
  v_more uuid[];
  v_room bigint;
  v_assets text[];
  v_tasks sluice.task[];
  v_some sluice.task[];
  v_code text;
  v_message text;
begin
  perform sluice.require_read_committed('claim_batch'), sluice.require_worker(claim_batch.worker_id);
  if claim_batch.batch_size is null or claim_batch.batch_size not between 1 and 10000 then
    raise exception 'batch_size: must be between 1 and 10000' using errcode = 'SL005';
  end if;
  select coalesce(claim_batch.lease, s.lease) into v_lease from sluice.settings s;
  if v_lease not between '1 second' and '1 hour' then
    raise exception 'lease: must be between 1 second and 1 hour' using errcode = 'SL005';
  end if;

  -- First what is under way: its envelopes may be out, and need no room. A due time further ahead than any legal one was
  -- written by a clock that had jumped, and counts as passed.
  v_ids := array(
    select w.operation_id from sluice.withdrawals w
     where w.due_at is not null and w.attempt > 0 and w.due_at <= v_now
     order by w.due_at limit claim_batch.batch_size for update skip locked);
  if cardinality(v_ids) < claim_batch.batch_size then
    v_ids := v_ids || array(
      select w.operation_id from sluice.withdrawals w
       where w.due_at is not null and w.attempt > 0 and w.due_at > v_far
       order by w.due_at limit claim_batch.batch_size - cardinality(v_ids) for update skip locked);
  end if;
  -- Then what is to be started, as far as there is room: what cannot be built is left alone, and does not churn.
  if cardinality(v_ids) < claim_batch.batch_size then
    v_room := sluice.room();
    v_assets := sluice.startable_assets();
    v_more := array(
      select w.operation_id from sluice.withdrawals w
       where w.due_at is not null and w.attempt = 0 and w.due_at <= v_now
         and w.asset = any (v_assets)
       order by w.due_at limit least(v_room, claim_batch.batch_size - cardinality(v_ids)) for update skip locked);
    v_ids := v_ids || v_more;
    v_room := v_room - cardinality(v_more);
    if v_room > 0 and cardinality(v_ids) < claim_batch.batch_size then
      v_ids := v_ids || array(
        select w.operation_id from sluice.withdrawals w
         where w.due_at is not null and w.attempt = 0 and w.due_at > v_far and w.asset = any (v_assets)
         order by w.due_at limit least(v_room, claim_batch.batch_size - cardinality(v_ids)) for update skip locked);
    end if;
  end if;
  if cardinality(v_ids) = 0 then
    return;
  end if;

  begin
    v_tasks := array(select t from sluice.claim_all(claim_batch.worker_id, v_ids, v_lease) t);
  exception when others then
    get stacked diagnostics v_code = returned_sqlstate;
    if not sluice.is_a_rows_fault(v_code) then
      raise;
    end if;
    v_tasks := '{}';
    for i in 1 .. cardinality(v_ids) loop
      begin
        v_some := array(select t from sluice.claim_all(claim_batch.worker_id, v_ids[i:i], v_lease) t);
        v_tasks := v_tasks || v_some;
      exception when others then
        get stacked diagnostics v_code = returned_sqlstate, v_message = message_text;
        if not sluice.is_a_rows_fault(v_code) then
          raise;
        end if;
        perform sluice.set_aside(v_ids[i], v_code || ' ' || v_message);
      end;
    end loop;
  end;

  if cardinality(v_tasks) > 0 then
    perform sluice.seen(claim_batch.worker_id, 'claim_batch', cardinality(v_tasks));
  end if;
  return query select * from unnest(v_tasks);
end
$$;
comment on function sluice.claim_batch is
  'Leases up to batch_size withdrawals that are due and returns what is to be done for them. Use the tasks only after a clean COMMIT.';
