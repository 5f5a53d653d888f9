-- observe_blocks: takes solid blocks in and settles all that they decide. Everything is derived from the blocks' bytes. Match
-- first, then sweep: an envelope with an inclusion on file is never swept. A fixed number of statements, whatever the number of
-- blocks and of withdrawals they decide.

-- Settles these withdrawals, as the followed blocks stand now. Locks them first, in operation_id order, and waits for others a
-- little less than PostgreSQL's deadlock_timeout: whoever locks in another order finds this one giving way.
create function sluice.settle(ids uuid[], node text)
returns table (operation_id uuid, state sluice.state, txid bytea, block_number bigint)
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '800ms'
as $$
#variable_conflict use_column
declare
  v_settings sluice.settings;
  v_tip sluice.blocks;
  v_now timestamptz := sluice.now();
  v_dead bytea[];
  v_closings bigint[];
begin
  select * into v_settings from sluice.settings;
  select * into v_tip from sluice.blocks order by number desc limit 1;

  perform from sluice.withdrawals w where w.operation_id = any (settle.ids) order by w.operation_id for update;

  -- Match: what a followed block holds.
  update sluice.envelopes e set
    fate = 'included', receipt = p.receipt, block_number = p.block_number
    from sluice.payments p
   where e.operation_id = any (settle.ids) and p.operation_id = any (settle.ids) and e.fate is null and p.txid = e.txid;

  -- Sweep: what no block holds and none can.
  select coalesce(array_agg(v.txid), '{}'), array_agg(c.closing) into v_dead, v_closings
    from sluice.envelopes v
   cross join lateral sluice.coverage_of(v.ref_block_number, v.expiration_ms) c
   where v.operation_id = any (settle.ids) and v.fate is null and v.expiration_ms <= v_tip.timestamp_ms
     and (select count(*) from sluice.payments p where p.txid = v.txid) = 0
     and sluice.envelope_fate(
           v.expiration_ms, v.ref_block_number, c.first_followed, c.last_followed, c.closing, c.closing_ms, c.margin, null, null
         ) = 'dead';
  if cardinality(v_dead) > 0 then
    update sluice.envelopes e set
      fate = 'dead', first_block = e.ref_block_number, last_block = d.closing
      from unnest(v_dead, v_closings) d (txid, closing)
     where e.txid = d.txid and e.txid = any (v_dead);
  end if;

  return query
  -- Made once, whatever a planner that knows little of the sets would make of it.
  with told as materialized (
    select * from sluice.evidence_of(settle.ids)
  ),
  facts as materialized (
    select w.operation_id, w.state as was, e.txid, e.receipt, e.block_number, e.fate, e.evidence,
           e.block_number + coalesce(w.depth, a.depth) as deep_at,
           sluice.settlement(
             e.fate = 'dead', e.block_number, e.receipt, v_tip.number, coalesce(w.depth, a.depth), w.attempt - w.uncounted, v_settings.attempts,
             w.accepted, w.cancel_reason is not null) as outcome
      from sluice.withdrawals w
      join sluice.assets a on a.asset = w.asset
      join told e on e.operation_id = w.operation_id
     where w.operation_id = any (settle.ids) and not sluice.is_terminal(w.state::text)
  ),
  aimed as (
    select f.*,
           case f.outcome
             when 'confirm' then 'confirmed'
             when 'fail' then 'failed'
             when 'rebuild' then 'signing'
             when 'rebuild_later' then 'signing'
             -- Paid and not deep enough, or a receipt that says nothing: on chain all the same.
             else 'broadcast'
           end::sluice.state as becomes
      from facts f
  ),
  walked as (
    select a.*,
           case
             when a.becomes = 'broadcast' and a.was = 'broadcast' then '{}'
             else sluice.shortest_path(a.was::text, a.becomes::text)
           end::sluice.state[] as path
      from aimed a
     -- A withdrawal that waits for its depth, or for a person, has been walked there already: nothing is written again.
     where not (a.becomes = 'broadcast' and a.was = 'broadcast'
                and exists (select from sluice.withdrawals w
                             where w.operation_id = a.operation_id
                               and (w.deep_at is not distinct from a.deep_at and a.outcome = 'wait' or w.due_at is null and a.outcome = 'park')))
  ),
  written as (
    update sluice.withdrawals w set
      state = k.becomes,
      step_seq = w.seq,
      -- Walked to broadcast already: the inclusion is still told, as a remark.
      step_path = case when cardinality(k.path) = 0 then array[w.state]::sluice.state[] else k.path end,
      step_detail = sluice.details(
        greatest(1, cardinality(k.path)),
        k.evidence || case when k.outcome = 'fail' and w.cancel_reason is not null then sluice.cancellation(w.cancel_reason) else '{}' end),
      step_by = settle.node,
      block_number = case when k.outcome in ('confirm') then k.block_number else w.block_number end,
      deep_at = case when k.outcome = 'wait' then k.deep_at else null end,
      confirmed_at = case when k.outcome = 'confirm' then v_now end,
      failure_reason = case
                         when k.outcome = 'fail' and w.cancel_reason is not null then 'cancelled: ' || w.cancel_reason
                         when k.outcome = 'fail' and k.fate = 'dead' then 'its last allowed envelope died without being included'
                         when k.outcome = 'fail' then 'the chain says ' || k.receipt
                       end,
      uncounted = w.uncounted + case when k.outcome = 'rebuild_later' then 1 else 0 end,
      last_error = case
                     when k.outcome = 'park' then 'block ' || k.block_number || ' holds its envelope with the receipt ' || k.receipt || ', which decides nothing'
                     when k.outcome in ('rebuild', 'rebuild_later') and k.fate = 'included' then 'the chain said ' || k.receipt
                     when k.outcome = 'rebuild_later' then left('no node ever took its envelope; last answer: ' || coalesce(w.refusal, w.last_error, 'none'), 500)
                     else w.last_error
                   end,
      held_by = case when k.outcome = 'rebuild_later' then 'never_accepted' end,
      sent_ms = case when k.outcome in ('rebuild', 'rebuild_later') then null else w.sent_ms end,
      -- Whoever holds it, holds an envelope that is over.
      fencing_token = w.fencing_token + case when k.outcome in ('rebuild', 'rebuild_later', 'park') then 1 else 0 end,
      leased_by = case when k.outcome in ('rebuild', 'rebuild_later', 'park') then null else w.leased_by end,
      due_at = case k.outcome
                 when 'rebuild' then v_now
                 when 'rebuild_later' then v_now + interval '1 millisecond' * sluice.backoff_ms(w.uncounted + 1)
                 when 'park' then null
                 when 'wait' then v_now + v_settings.resend
                 else w.due_at
               end
      from walked k
     where w.operation_id = k.operation_id and w.operation_id = any (settle.ids)
    returning w.operation_id, w.state, k.txid, coalesce(k.block_number, (k.evidence ->> 'last_block')::bigint) as block_number
  )
  select r.operation_id, r.state, r.txid, r.block_number from written r order by r.operation_id;
end
$$;

-- Settles them all at once or, where that raises, one by one: a culprit is noted, and tried again with the next block.
create function sluice.settle_all(ids uuid[], node text)
returns table (operation_id uuid, state sluice.state, txid bytea, block_number bigint)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_code text;
  v_message text;
begin
  if cardinality(settle_all.ids) = 0 then
    return;
  end if;
  begin
    return query select * from sluice.settle(settle_all.ids, settle_all.node);
    delete from sluice.unsettled s where s.operation_id = any (settle_all.ids);
  exception when others then
    get stacked diagnostics v_code = returned_sqlstate;
    if not sluice.is_a_rows_fault(v_code) then
      raise;
    end if;
    for i in 1 .. cardinality(settle_all.ids) loop
      begin
        return query select * from sluice.settle(settle_all.ids[i:i], settle_all.node);
        delete from sluice.unsettled s where s.operation_id = settle_all.ids[i];
      exception when others then
        get stacked diagnostics v_code = returned_sqlstate, v_message = message_text;
        if not sluice.is_a_rows_fault(v_code) then
          raise;
        end if;
        insert into sluice.unsettled as s (operation_id, error) values (settle_all.ids[i], left(v_code || ' ' || v_message, 500))
        on conflict (operation_id) do update set error = excluded.error, at = excluded.at;
      end;
    end loop;
  end;
end
$$;

-- Three failed receipts in a row pause a wallet: an empty one would otherwise burn through every withdrawal it pays. What was
-- before the last resumption does not count.
create function sluice.pause_failing_wallets(wallets text[]) returns void
language sql volatile set search_path = pg_catalog, pg_temp
as $$
  insert into sluice.pauses (wallet, reason, paused_by)
  select t.wallet, 'the last three transfers failed on chain: ' || string_agg(t.receipt, ', ' order by t.block_number, t.position), 'sluice'
    from (select distinct u.wallet from unnest(pause_failing_wallets.wallets) u (wallet)) d
   cross join lateral (
     select p.wallet, p.receipt, p.block_number, p.position
       from sluice.payments p
      where p.wallet = d.wallet
        and p.block_number > coalesce(
              (select max(z.resumed_tip) from sluice.pauses z where z.wallet = d.wallet and z.resumed_at is not null), -1)
      order by p.block_number desc, p.position desc
      limit 3
   ) t
   group by t.wallet
  having count(*) = 3 and bool_and(sluice.receipt_failed(t.receipt))
  on conflict do nothing
$$;

-- Folds the tallies' parts together once there are many. The caller holds the chain's row, so nobody else does.
create function sluice.fold_tallies() returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  if (select count(*) from (select from sluice.tallies limit 500) t) < 500 then
    return;
  end if;
  with gone as (
    delete from sluice.tallies returning state, asset, withdrawals, units
  )
  insert into sluice.tallies (state, asset, withdrawals, units)
  select g.state, g.asset, sum(g.withdrawals), sum(g.units) from gone g group by g.state, g.asset;
end
$$;

create function sluice.observe_blocks(node text, blocks bytea[])
returns table (operation_id uuid, state sluice.state, txid bytea, block_number bigint)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_tip sluice.blocks;
  v_headers sluice.header[];
  v_first bigint;
  v_last bigint;
  v_fault record;
  v_chain_first bigint;
  v_ids uuid[];
  v_late uuid[];
  v_free uuid[];
  v_wallets text[];
begin
  perform sluice.require_read_committed('observe_blocks'), sluice.require('node', observe_blocks.node);
  perform sluice.require_short('node', observe_blocks.node, 200);
  if observe_blocks.blocks is null or cardinality(observe_blocks.blocks) not between 1 and 1000 then
    raise exception 'blocks: must be 1 to 1000 blocks' using errcode = 'SL005';
  end if;
  -- An array may begin at any number, and have rows: below, its blocks are counted from 1. What a count passed over would never
  -- be read, and a paid envelope would look dead.
  if array_ndims(observe_blocks.blocks) <> 1 or array_lower(observe_blocks.blocks, 1) <> 1 then
    raise exception 'blocks: must be an array of one dimension whose first element is number 1' using errcode = 'SL005';
  end if;
  if array_position(observe_blocks.blocks, null) is not null then
    raise exception 'blocks[%]: is missing', array_position(observe_blocks.blocks, null) using errcode = 'SL005';
  end if;

  v_headers := array(
    select (h.ord, h.number, h.id, h.parent_id, h.timestamp_ms, h.root, h.root_holds, h.transactions)::sluice.header
      from sluice.read_headers(observe_blocks.blocks) h order by h.ord);
  select h.ord, h.number into v_fault from unnest(v_headers) h where not h.root_holds order by h.ord limit 1;
  if found then
    raise exception 'blocks[%]: the transactions of block % do not give its root', v_fault.ord, v_fault.number
      using errcode = 'SL020', hint = 'The node left some out, or changed them: ask another node.';
  end if;
  v_first := v_headers[1].number;
  v_last := v_headers[cardinality(v_headers)].number;
  select h.ord, h.number into v_fault from unnest(v_headers) h where h.number <> v_first + h.ord - 1 order by h.ord limit 1;
  if found then
    raise exception 'blocks[%]: is block %, and block % was to follow', v_fault.ord, v_fault.number, v_first + v_fault.ord - 1
      using errcode = 'SL021', hint = 'Hand in consecutive blocks.';
  end if;
  select h.ord, h.number into v_fault
    from unnest(v_headers) h
   where h.ord > 1 and (h.parent_id <> v_headers[h.ord - 1].id or h.timestamp_ms <= v_headers[h.ord - 1].timestamp_ms)
   order by h.ord limit 1;
  if found then
    raise exception 'blocks[%]: block % does not follow from block %', v_fault.ord, v_fault.number, v_fault.number - 1
      using errcode = 'SL021', hint = 'They are of two chains: ask another node.';
  end if;

  -- One follower at a time: the others find the blocks there.
  select c.first_number into v_chain_first from sluice.chain c for no key update;
  if not found then
    raise exception 'no chain is followed' using errcode = 'SL022', hint = 'An operator names it with sluice.follow_from; the runner''s start-block prints the call.';
  end if;
  select * into v_tip from sluice.blocks order by number desc limit 1;
  if v_first > v_tip.number + 1 then
    raise exception 'blocks[1]: is block %, and block % is the next to follow', v_first, v_tip.number + 1
      using errcode = 'SL021', hint = 'Hand in the blocks between.';
  end if;
  if v_first < v_chain_first then
    raise exception 'blocks[1]: is block %, and following began with block %', v_first, v_chain_first using errcode = 'SL021';
  end if;
  select h.ord, h.number into v_fault
    from unnest(v_headers) h
    join sluice.blocks b on b.number = h.number
   where b.id <> h.id
   order by h.ord limit 1;
  if found then
    raise exception 'blocks[%]: is another block % than the one on file', v_fault.ord, v_fault.number
      using errcode = 'SL021',
            hint = 'A solid block never changes: the node is on another chain, or showed a block that was not solid. Ask another node.';
  end if;

  insert into sluice.blocks (number, id, parent_id, timestamp_ms, root, transactions)
  select h.number, h.id, h.parent_id, h.timestamp_ms, h.root, h.transactions
    from unnest(v_headers) h
   where h.number > v_tip.number
   order by h.number;

  insert into sluice.observers as o (login, first_number, last_number, node, seen_at)
  values (session_user, v_first, v_last, observe_blocks.node, sluice.now())
  on conflict (login) do update set
    -- Only what a login read without a gap counts: where the batch touches what it read before, both count, else it begins anew.
    first_number = case when v_first <= o.last_number + 1 and v_last >= o.first_number - 1 then least(o.first_number, v_first) else v_first end,
    last_number = case when v_first <= o.last_number + 1 and v_last >= o.first_number - 1 then greatest(o.last_number, v_last) else v_last end,
    node = excluded.node, seen_at = excluded.seen_at;

  with filed as (
    insert into sluice.payments (txid, operation_id, block_number, position, receipt, wallet, contract, to_address, amount_units, tag)
    select t.txid, e.operation_id, t.block_number, t.position, t.receipt, t.owner, t.contract, t.to_address, t.amount_units, t.tag
      from sluice.read_outflows(
             -- All of them, those on file too: another observer's copy is read as well as the first one's.
             observe_blocks.blocks, array(select l.address from sluice.wallets l)) t
      join sluice.envelopes e on e.txid = t.txid
    on conflict (txid) do nothing
    returning operation_id, wallet
  )
  select array_agg(f.operation_id), array_agg(f.wallet) into v_ids, v_wallets from filed f;

  -- Whatever these blocks decide: what they hold, what they leave no block for, what is now deep enough, and what could not be
  -- written when it was decided.
  v_ids := array(
    select distinct u.id
      from (
        select unnest(v_ids) as id
        union all
        select e.operation_id
          from sluice.wallets l
          join sluice.envelopes e on e.wallet = l.address and e.fate is null and e.expiration_ms <= (select max(b.timestamp_ms) from sluice.blocks b)
        union all
        select w.operation_id
          from sluice.withdrawals w
         where w.deep_at <= v_last and w.deep_at is not null and w.state <> 'confirmed' and w.state <> 'failed' and w.state <> 'rejected'
        union all
        select s.operation_id from sluice.unsettled s
      ) u
     order by u.id);

  -- What somebody held when it was decided may be held still: that is not waited for again.
  v_late := array(select s.operation_id from sluice.unsettled s);
  if cardinality(v_late) > 0 then
    v_late := array(select unnest(v_late) except select unnest(sluice.lock_what_is_free(v_late)));
    v_ids := array(select u.id from unnest(v_ids) u (id) where u.id <> all (v_late) order by u.id);
  end if;
  if cardinality(v_ids) > 0 then
    begin
      return query select * from sluice.settle_all(v_ids, observe_blocks.node);
    exception when lock_not_available then
      -- Somebody holds a row for longer than any call of sluice's takes. It is left to the next block, and the others are not.
      v_free := sluice.lock_what_is_free(v_ids);
      insert into sluice.unsettled as s (operation_id, error)
      select u.id, 'its row, or its account, is held by another session' from unnest(v_ids) u (id) where u.id <> all (v_free)
      on conflict (operation_id) do update set error = excluded.error, at = excluded.at;
      return query select * from sluice.settle_all(v_free, observe_blocks.node);
    end;
  end if;
  if cardinality(v_wallets) > 0 then
    perform sluice.pause_failing_wallets(v_wallets);
  end if;
  perform sluice.fold_tallies();
end
$$;
comment on function sluice.observe_blocks is
  'Takes consecutive solid blocks in, as protobuf Block bytes, and settles what they decide. Idempotent. Returns what it moved.';
