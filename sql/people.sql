-- What people ask: an envelope's fate, a withdrawal as its client may see it, its log, and what holds it.

create function sluice.fate(txid bytea) returns table (fate text, result text, block_number bigint, evidence jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
  select coalesce(e.fate, case when p.txid is not null then 'included' else 'in flight' end), coalesce(e.receipt, p.receipt),
         coalesce(e.block_number, p.block_number),
         jsonb_strip_nulls(jsonb_build_object(
           'operation_id', e.operation_id, 'attempt', e.attempt, 'expiration_ms', e.expiration_ms,
           'block_id', encode(b.id, 'hex'), 'block_ms', b.timestamp_ms,
           'first_block', coalesce(e.first_block, e.ref_block_number), 'first_block_id', encode(f.id, 'hex'),
           'last_block', e.last_block, 'last_block_id', encode(l.id, 'hex'), 'last_block_ms', l.timestamp_ms,
           'followed_to', t.number, 'followed_ms', t.timestamp_ms))
    from sluice.envelopes e
    -- On file, and not settled yet.
    left join sluice.payments p on p.txid = e.txid
    left join sluice.blocks b on b.number = coalesce(e.block_number, p.block_number)
    left join sluice.blocks f on f.number = e.ref_block_number
    left join sluice.blocks l on l.number = e.last_block
    left join lateral (select number, timestamp_ms from sluice.blocks order by number desc limit 1) t on true
   where e.txid = fate.txid
$$;
comment on function sluice.fate is 'What has become of an envelope: in flight, included (with the chain''s result) or dead. No row: no envelope of ours.';

create function sluice.withdrawal(operation_id uuid) returns setof sluice.client_view rows 1
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
  select w.operation_id, w.state, w.to_address, w.destination, w.amount::text, w.asset,
         coalesce(w.credit_account, w.account), w.rail, w.reason_code, w.reason,
         (select encode(e.txid, 'hex') from sluice.envelopes e where e.operation_id = w.operation_id order by e.attempt desc limit 1),
         w.block_number, w.failure_reason, w.created_at, w.confirmed_at, w.account, w.credit_account, w.posting_id, w.cancel_reason,
         case when w.state = 'requested' or w.state = 'validated' then sluice.missing_approvals(w.operation_id) end
    from sluice.withdrawals w
   where w.operation_id = withdrawal.operation_id
$$;
comment on function sluice.withdrawal is 'A withdrawal as its client may see it.';

create function sluice.timeline(operation_id uuid) returns table (
  seq int, from_state sluice.state, to_state sluice.state, at timestamptz, worker_id text, detail jsonb
)
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
  select e.seq, e.from_state, e.to_state, e.at, e.worker_id, e.detail
    from sluice.events e
   where e.operation_id = timeline.operation_id
   order by e.seq
$$;
comment on function sluice.timeline is 'What happened to a withdrawal, in order, with the evidence for each step.';

create function sluice.explain(operation_id uuid) returns setof sluice.explanation rows 1
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  w sluice.withdrawals;
  e sluice.envelopes;
  t sluice.blocks;
  s sluice.settings;
  v_now timestamptz := sluice.now();
  v_stands text;
  v_held text;
  v_may text;
  v_pause text;
  v_missing text;
begin
  select * into w from sluice.withdrawals x where x.operation_id = explain.operation_id;
  if not found then
    raise exception 'operation_id: no withdrawal has this id' using errcode = 'SL030';
  end if;
  select * into e from sluice.envelopes x where x.operation_id = w.operation_id order by x.attempt desc limit 1;
  select * into t from sluice.blocks order by number desc limit 1;
  select * into s from sluice.settings;
  select string_agg(p.reason, '; ') into v_pause
    from sluice.pauses p
   where p.resumed_at is null and (p.wallet is null or p.wallet = w.wallet) and (p.asset is null or p.asset = w.asset);

  if w.state = 'requested' or w.state = 'validated' then
    v_missing := sluice.missing_approvals(w.operation_id);
  end if;

  v_stands := case w.state
    when 'requested' then 'Taken in; nothing is built yet.'
    when 'validated' then 'Checked; nothing is built yet.'
    when 'signing' then case
      when e.txid is not null and e.fate is null then format('Envelope %s is built and waits for its signature.', encode(e.txid, 'hex'))
      else format('%s envelope(s) are spent; a new one is to be built.', w.attempt) end
    when 'signed' then format('Envelope %s is signed and not sent yet.', encode(e.txid, 'hex'))
    when 'broadcasting' then format('Envelope %s may have been sent.', encode(e.txid, 'hex'))
    when 'broadcast' then format('Envelope %s was %s.', encode(e.txid, 'hex'), case when e.fate = 'included' then 'included in block ' || e.block_number || ' with ' || e.receipt else 'taken by a node' end)
    when 'confirmed' then case when w.rail = 'internal' then format('Credited to account %s by posting %s.', w.credit_account, w.posting_id) else format('Paid by %s in block %s.', encode(e.txid, 'hex'), w.block_number) end
    else 'Over: ' || w.failure_reason
  end;
  v_held := case
    when sluice.is_terminal(w.state::text) then null
    when v_missing is not null then 'has ' || v_missing
    when w.deep_at is not null then format('waits for block %s to be followed (now %s)', w.deep_at, t.number)
    when w.leased_by is not null and w.due_at > v_now then format('leased by %s', w.leased_by)
    when w.due_at is null then coalesce(w.last_error, 'parked for a person')
    when w.cancel_reason is not null then 'is to end, and waits for the followed blocks to decide: ' || w.cancel_reason
    when v_pause is not null and (e.txid is null or e.fate is not null or w.sent_ms is null) then 'paused: ' || v_pause
    when e.txid is not null and e.fate is null and t.timestamp_ms >= e.expiration_ms then 'expired; waits for the followed blocks to decide'
    when e.txid is not null and e.fate is null and w.state in ('broadcasting', 'broadcast') then
      format('in flight until chain time %s; followed to %s', to_timestamp(e.expiration_ms / 1000.0), to_timestamp(t.timestamp_ms / 1000.0))
    when t.number is null then 'no chain is followed'
    when t.timestamp_ms < extract(epoch from v_now - s.freshness) * 1000 then format('the newest followed block is from %s', to_timestamp(t.timestamp_ms / 1000.0))
    when not exists (select from sluice.wallets) then 'there is no wallet'
    when w.attempt = 0 and w.asset <> all (sluice.startable_assets()) then 'every wallet is paused for ' || w.asset
    when w.attempt = 0 and sluice.room() = 0 then 'no wallet has room for one more live envelope'
    else w.held_by
  end;
  v_may := case
    when sluice.is_terminal(w.state::text) then 'Nothing: it never changes again.'
    when v_missing is not null then 'sluice.approve, sluice.reject, or sluice.cancel.'
    when w.cancel_reason is not null then 'Nothing: it ends by itself.'
    when e.txid is not null and e.fate is null then 'Nothing by hand ends it while an envelope is live: only solid blocks may end or rebuild it. sluice.cancel stops further sending.'
    when w.due_at is null then 'Look the transaction up on the chain; its receipt in the block decides nothing by itself.'
    when v_pause is not null then 'sluice.resume, or sluice.cancel.'
    when e.txid is not null and e.fate = 'included' and not sluice.receipt_failed(e.receipt) then 'Nothing: it is paid, and waits for its depth.'
    else 'sluice.cancel.'
  end;
  return query select w.operation_id, w.state, v_stands, v_held, w.due_at, v_may;
end
$$;
comment on function sluice.explain is 'Where a withdrawal stands, what holds it, when it is next due, and what may be done.';
