-- What workers report: signatures, nodes' answers, single steps, and what they give back. Every write is a compare-and-swap on
-- the fencing token and the state; a row that is not the reporter's any more comes back with state NULL, and the reporter
-- stops there. Rows are locked in operation_id order.

------------------------------------------------------------------------------------------------------------- signatures

create function sluice.file_signatures(worker_id text, results jsonb)
returns table (
  ord int, operation_id uuid, state sluice.state, fencing_token bigint, action sluice.action, wallet text, txid bytea,
  raw_data bytea, signature bytea, expiration_ms bigint, attempt int
)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := sluice.now();
  v_lease interval := (select s.lease from sluice.settings s);
  v_tip_ms bigint := (select max(b.timestamp_ms) from sluice.blocks b);
begin
  perform from sluice.withdrawals w
    where w.operation_id in (select g.operation_id from sluice.read_signatures(file_signatures.results::text) g)
    order by w.operation_id for update;

  return query
  with given as materialized (
    select g.ord, g.operation_id, g.fencing_token, g.txid, g.signature from sluice.read_signatures(file_signatures.results::text) g
  ),
  facts as materialized (
    select g.ord, g.operation_id, g.txid, g.signature, e.raw_data, e.expiration_ms,
           sluice.signature_fault(l.signer, l.signer_address, g.txid, g.signature) as fault,
           v_tip_ms < e.expiration_ms and not sluice.is_paused(w.wallet, w.asset) as to_be_sent
      from given g
      join sluice.withdrawals w on w.operation_id = g.operation_id
      join sluice.envelopes e on e.txid = g.txid and e.operation_id = g.operation_id and e.fate is null and e.signature is null
      join sluice.wallets l on l.address = w.wallet
     where sluice.owns(g.fencing_token, 'signing', w.fencing_token, w.state::text)
  ),
  signed as (
    update sluice.envelopes e set signature = f.signature
      from facts f
     where e.txid = f.txid and f.fault is null
    returning e.txid
  ),
  written as (
    update sluice.withdrawals w set
      state = case when f.fault is not null then w.state when f.to_be_sent then 'broadcasting' else 'signed' end,
      step_seq = w.seq,
      step_path = case
                    when f.fault is not null then '{}'
                    when f.to_be_sent then '{signed,broadcasting}'
                    else '{signed}'
                  end::sluice.state[],
      step_detail = case
                      when f.fault is null then
                        jsonb_build_array(jsonb_build_object('txid', encode(f.txid, 'hex')), jsonb_build_object('txid', encode(f.txid, 'hex')))
                    end,
      step_by = file_signatures.worker_id,
      last_error = case when f.fault is not null then 'signature refused: ' || f.fault end,
      leased_by = case when f.fault is null and f.to_be_sent then file_signatures.worker_id end,
      -- A refused signature: the same digest is offered again, after a lease's time.
      due_at = v_now + v_lease
      from facts f
     where w.operation_id = f.operation_id
       and (f.fault is not null or f.txid in (select s.txid from signed s))
    returning w.operation_id, w.state, w.fencing_token, w.wallet, w.attempt
  )
  select g.ord, g.operation_id, r.state, r.fencing_token,
         case when r.state = 'broadcasting' then 'broadcast'::sluice.action end,
         r.wallet, case when r.state is not null then f.txid end,
         case when r.state = 'broadcasting' then f.raw_data end,
         case when r.state = 'broadcasting' then f.signature end,
         case when r.state is not null then f.expiration_ms end, r.attempt
    from given g
    left join facts f on f.ord = g.ord
    left join written r on r.operation_id = g.operation_id
   order by g.ord;
end
$$;

-------------------------------------------------------------------------------------------------------- nodes' answers

create function sluice.file_broadcasts(worker_id text, results jsonb)
returns table (
  ord int, operation_id uuid, state sluice.state, fencing_token bigint, action sluice.action, wallet text, txid bytea,
  raw_data bytea, signature bytea, expiration_ms bigint, attempt int
)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_now timestamptz := sluice.now();
  v_resend interval := (select s.resend from sluice.settings s);
  v_tip_ms bigint := (select max(b.timestamp_ms) from sluice.blocks b);
begin
  perform from sluice.withdrawals w
    where w.operation_id in (select g.operation_id from sluice.read_broadcasts(file_broadcasts.results::text) g)
    order by w.operation_id for update;

  return query
  with given as materialized (
    select g.ord, g.operation_id, g.fencing_token, g.txid, g.node, g.code, g.message, sluice.broadcast_verdict(g.code) as verdict
      from sluice.read_broadcasts(file_broadcasts.results::text) g
  ),
  facts as materialized (
    select g.*, e.expiration_ms,
           w.state = 'broadcasting' and g.verdict = 'accepted' as moves,
           -- The first answer that is no acceptance is kept and logged; later ones are not.
           w.refusal is null and g.verdict in ('refused', 'busy') as remarks,
           left(g.code || coalesce(': ' || g.message, ''), 500) as answer,
           jsonb_strip_nulls(jsonb_build_object('txid', encode(g.txid, 'hex'), 'node', g.node, 'code', g.code, 'message', g.message)) as detail
      from given g
      join sluice.withdrawals w on w.operation_id = g.operation_id
      join sluice.envelopes e on e.txid = g.txid and e.operation_id = g.operation_id and e.attempt = w.attempt
     where sluice.owns(g.fencing_token, 'broadcasting', w.fencing_token, w.state::text)
        or sluice.owns(g.fencing_token, 'broadcast', w.fencing_token, w.state::text)
  ),
  written as (
    update sluice.withdrawals w set
      state = case when f.moves then 'broadcast' else w.state end,
      step_seq = w.seq,
      step_path = case when f.moves then '{broadcast}' when f.remarks then array[w.state]::sluice.state[] else '{}' end::sluice.state[],
      step_detail = jsonb_build_array(f.detail),
      step_by = file_broadcasts.worker_id,
      accepted = w.accepted or f.verdict = 'accepted',
      refusal = case when f.remarks then f.answer else w.refusal end,
      last_error = case when f.verdict = 'accepted' then null else f.answer end,
      sent_ms = coalesce(v_tip_ms, w.sent_ms),
      leased_by = null,
      due_at = v_now + v_resend
      from facts f
     where w.operation_id = f.operation_id
    returning w.operation_id, w.state, w.fencing_token, w.wallet, w.attempt
  )
  select g.ord, g.operation_id, r.state, r.fencing_token, null::sluice.action, r.wallet,
         case when r.state is not null then g.txid end, null::bytea, null::bytea,
         case when r.state is not null then f.expiration_ms end, r.attempt
    from given g
    left join facts f on f.ord = g.ord
    left join written r on r.operation_id = g.operation_id
   order by g.ord;
end
$$;

--------------------------------------------------------------------------------------------------------- both, guarded

-- Files a batch through one of the two functions above; a batch that raises is filed element by element, and the culprit is
-- set aside.
create function sluice.file_results(file text, worker_id text, results jsonb)
returns table (
  operation_id uuid, state sluice.state, fencing_token bigint, action sluice.action, wallet text, txid bytea,
  raw_data bytea, signature bytea, expiration_ms bigint, attempt int
)
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_rows sluice.filed[];
  v_some sluice.filed[];
  v_element jsonb;
  v_code text;
  v_message text;
  v_call constant text := format(
    'select array(select (r.operation_id, r.state, r.fencing_token, r.action, r.wallet, r.txid, r.raw_data, r.signature, r.expiration_ms, r.attempt)::sluice.filed from sluice.%I($1, $2) r order by r.ord)',
    file_results.file);
begin
  begin
    execute v_call into v_rows using file_results.worker_id, file_results.results;
  exception when others then
    get stacked diagnostics v_code = returned_sqlstate;
    -- SL005 is the caller's fault, not a row's: nothing is filed.
    if v_code = 'SL005' or not sluice.is_a_rows_fault(v_code) then
      raise;
    end if;
    v_rows := '{}';
    for v_element in
      select e.value
        from jsonb_array_elements(file_results.results) with ordinality e
       order by (e.value ->> 'operation_id')::uuid
    loop
      begin
        execute v_call into v_some using file_results.worker_id, jsonb_build_array(v_element);
        v_rows := v_rows || v_some;
      exception when others then
        get stacked diagnostics v_code = returned_sqlstate, v_message = message_text;
        if not sluice.is_a_rows_fault(v_code) then
          raise;
        end if;
        perform sluice.set_aside(w.operation_id, v_code || ' ' || v_message)
           from sluice.withdrawals w
          where w.operation_id = (v_element ->> 'operation_id')::uuid
            and w.fencing_token = (v_element ->> 'fencing_token')::bigint;
        v_rows := v_rows || row((v_element ->> 'operation_id')::uuid, null, null, null, null, null, null, null, null, null)::sluice.filed;
      end;
    end loop;
    v_rows := array(
      select r
        from unnest(v_rows) r
        join jsonb_array_elements(file_results.results) with ordinality e on (e.value ->> 'operation_id')::uuid = r.operation_id
       order by e.ordinality);
  end;
  return query select * from unnest(v_rows);
end
$$;

create function sluice.record_signatures(worker_id text, results jsonb)
returns table (
  operation_id uuid, state sluice.state, fencing_token bigint, action sluice.action, wallet text, txid bytea,
  raw_data bytea, signature bytea, expiration_ms bigint, attempt int
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  perform sluice.require_read_committed('record_signatures'), sluice.require_worker(record_signatures.worker_id);
  if record_signatures.results is null then
    raise exception 'results: is missing' using errcode = 'SL005';
  end if;
  return query select * from sluice.file_results('file_signatures', record_signatures.worker_id, record_signatures.results);
  perform sluice.seen(record_signatures.worker_id, 'record_signatures', jsonb_array_length(record_signatures.results));
end
$$;
comment on function sluice.record_signatures is
  'Files signatures and commits to sending: what comes back with action broadcast is now to be sent. state NULL: not yours any more.';

create function sluice.record_broadcasts(worker_id text, results jsonb)
returns table (
  operation_id uuid, state sluice.state, fencing_token bigint, action sluice.action, wallet text, txid bytea,
  raw_data bytea, signature bytea, expiration_ms bigint, attempt int
)
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  perform sluice.require_read_committed('record_broadcasts'), sluice.require_worker(record_broadcasts.worker_id);
  if record_broadcasts.results is null then
    raise exception 'results: is missing' using errcode = 'SL005';
  end if;
  return query select * from sluice.file_results('file_broadcasts', record_broadcasts.worker_id, record_broadcasts.results);
end
$$;
comment on function sluice.record_broadcasts is
  'Files nodes'' answers. SUCCESS and DUP move a withdrawal to broadcast; nothing a node says does more.';

----------------------------------------------------------------------------------------------------- one row at a time

create function sluice.fenced_cas(
  operation_id uuid, fencing_token bigint, from_state sluice.state, to_state sluice.state, worker_id text,
  sets jsonb default '{}', detail jsonb default '{}'
) returns setof sluice.swapped rows 1
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_row sluice.withdrawals;
  v_due interval;
  v_lease interval := (select s.lease from sluice.settings s);
  v_key text;
  v_block bigint;
begin
  perform sluice.require_read_committed('fenced_cas'), sluice.require_worker(fenced_cas.worker_id),
          sluice.require('operation_id', fenced_cas.operation_id::text),
          sluice.require('fencing_token', fenced_cas.fencing_token::text),
          sluice.require('from_state', fenced_cas.from_state::text), sluice.require('to_state', fenced_cas.to_state::text);
  if jsonb_typeof(coalesce(fenced_cas.sets, 'null')) <> 'object' then
    raise exception 'sets: must be a JSON object' using errcode = 'SL005';
  end if;
  if jsonb_typeof(coalesce(fenced_cas.detail, 'null')) <> 'object' then
    raise exception 'detail: must be a JSON object' using errcode = 'SL005';
  end if;
  perform sluice.require_short('detail', fenced_cas.detail::text, 10000);
  select k into v_key from jsonb_object_keys(fenced_cas.sets) k where k not in ('last_error', 'due_in') limit 1;
  if found then
    raise exception 'sets: unknown key "%"', left(v_key, 40) using errcode = 'SL005', hint = 'Known are last_error and due_in.';
  end if;
  begin
    v_due := (fenced_cas.sets ->> 'due_in')::interval;
  exception when data_exception then
    raise exception 'sets.due_in: "%" is no interval', left(fenced_cas.sets ->> 'due_in', 40) using errcode = 'SL005';
  end;
  if v_due not between '0 seconds' and interval '1 millisecond' * sluice.longest_wait_ms() then
    raise exception 'sets.due_in: must be between 0 and 1 hour' using errcode = 'SL005';
  end if;
  if fenced_cas.to_state = 'rejected' then
    raise exception 'to_state: a runner may not reject' using errcode = 'SL010';
  end if;
  if fenced_cas.from_state <> fenced_cas.to_state and not sluice.can_transition(fenced_cas.from_state, fenced_cas.to_state) then
    raise exception '% -> % is no step of the chart', fenced_cas.from_state, fenced_cas.to_state
      using errcode = 'SL010', hint = 'select * from sluice.transitions() shows the chart.';
  end if;
  -- Signing begins with an envelope, and claim_batch builds it: a row put there without one could be failed without ever having
  -- been tried.
  if fenced_cas.to_state = 'signing' and fenced_cas.from_state <> 'signing' then
    raise exception '% -> signing lacks its envelope', fenced_cas.from_state
      using errcode = 'SL012', hint = 'sluice.claim_batch builds envelopes.';
  end if;

  select * into v_row from sluice.withdrawals w where w.operation_id = fenced_cas.operation_id for update;
  if not found
     or not sluice.owns(fenced_cas.fencing_token, fenced_cas.from_state::text, v_row.fencing_token, v_row.state::text)
     or sluice.is_terminal(v_row.state::text) then
    return;
  end if;
  -- The guard asks for the block that paid, by its number, and for its depth.
  if fenced_cas.to_state = 'confirmed' then
    select e.block_number into v_block
      from sluice.envelopes e
     where e.operation_id = fenced_cas.operation_id and e.fate = 'included' and e.receipt = 'SUCCESS';
    if not found then
      raise exception 'withdrawal %: no followed block holds an envelope of it with SUCCESS', fenced_cas.operation_id using errcode = 'SL012';
    end if;
  end if;
  return query
  update sluice.withdrawals w set
    state = fenced_cas.to_state,
    block_number = coalesce(v_block, w.block_number),
    confirmed_at = case when fenced_cas.to_state = 'confirmed' then sluice.now() end,
    step_seq = w.seq,
    step_path = case when fenced_cas.from_state = fenced_cas.to_state then '{}' else array[fenced_cas.to_state] end::sluice.state[],
    -- What a step that waits for an end rests on is filed with it, whatever the worker says besides.
    step_detail = jsonb_build_array(
      fenced_cas.detail
      || case
           when sluice.stars_of(fenced_cas.from_state::text, fenced_cas.to_state::text) = '' then '{}'
           else coalesce((select v.evidence from sluice.evidence_of(array[w.operation_id]) v), '{}')
         end),
    step_by = fenced_cas.worker_id,
    last_error = coalesce(left(fenced_cas.sets ->> 'last_error', 500), w.last_error),
    failure_reason = case when fenced_cas.to_state = 'failed' then 'ended by its worker ' || fenced_cas.worker_id || coalesce(': ' || left(fenced_cas.sets ->> 'last_error', 500), '') end,
    leased_by = case when v_due is null then fenced_cas.worker_id end,
    due_at = sluice.now() + coalesce(v_due, v_lease)
   where w.operation_id = fenced_cas.operation_id
  returning w.operation_id, w.state, w.fencing_token;
  perform sluice.seen(fenced_cas.worker_id, 'fenced_cas', 1);
end
$$;
comment on function sluice.fenced_cas is
  'One legal step, or none (postpone: sets.due_in), for the holder of the token; renews the lease. No row: not yours any more.';

create function sluice.release(worker_id text, operation_ids uuid[], fencing_tokens bigint[]) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_released bigint;
begin
  perform sluice.require_read_committed('release'), sluice.require_worker(release.worker_id);
  if release.operation_ids is null or release.fencing_tokens is null
     or cardinality(release.operation_ids) <> cardinality(release.fencing_tokens) then
    raise exception 'operation_ids, fencing_tokens: must be two arrays of one length' using errcode = 'SL005';
  end if;
  perform from sluice.withdrawals w
    where w.operation_id = any (release.operation_ids) order by w.operation_id for update;
  update sluice.withdrawals w set leased_by = null, due_at = sluice.now()
    from unnest(release.operation_ids, release.fencing_tokens) g (operation_id, fencing_token)
   where w.operation_id = g.operation_id and w.fencing_token = g.fencing_token
     and w.leased_by = release.worker_id and w.due_at is not null;
  get diagnostics v_released = row_count;
  return v_released;
end
$$;
comment on function sluice.release is 'Gives leased withdrawals back at once: what a worker does before it stops. Returns how many were still its own.';
