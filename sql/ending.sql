-- How people end a withdrawal. What nothing built can pay ends at once; else a cancellation is a wish: nothing of it is signed or sent any
-- more, and it takes effect when the chain has decided. Repeating one with the same reason is free.

-- The row, locked, for whoever decides about it.
create function sluice.lock_withdrawal(operation_id uuid) returns sluice.withdrawals
language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  w sluice.withdrawals;
begin
  select * into w from sluice.withdrawals x where x.operation_id = lock_withdrawal.operation_id for update;
  if not found then
    raise exception 'operation_id: no withdrawal has this id' using errcode = 'SL030';
  end if;
  return w;
end
$$;

-- Raises SL001 where somebody said it before for another reason.
create function sluice.require_same_reason(operation_id uuid, said text, says text) returns void
immutable language plpgsql
as $$
begin
  if require_same_reason.said <> require_same_reason.says then
    raise exception 'reason: withdrawal % has ended, or is to end, for another: "%"', require_same_reason.operation_id, left(require_same_reason.said, 100)
      using errcode = 'SL001', hint = 'The first call holds.';
  end if;
end
$$;

create function sluice.reject(operation_id uuid, reason text) returns sluice.state
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  w sluice.withdrawals;
  v_said constant text := 'rejected: ' || reject.reason;
begin
  perform sluice.require('operation_id', reject.operation_id::text), sluice.require_reason(reject.reason);
  w := sluice.lock_withdrawal(reject.operation_id);
  if w.state = 'rejected' and w.failure_reason like 'rejected: %' then
    perform sluice.require_same_reason(w.operation_id, w.failure_reason, v_said);
    return w.state;
  end if;
  if sluice.is_terminal(w.state::text) then
    raise exception 'withdrawal % is %: it never changes again', w.operation_id, w.state using errcode = 'SL011';
  end if;
  if w.state <> 'requested' and w.state <> 'validated' then
    raise exception 'withdrawal % is %: it was handed to its rail', w.operation_id, w.state
      using errcode = 'SL012', hint = 'sluice.cancel stops further sending, and ends it if the chain shows that it was not paid.';
  end if;
  update sluice.withdrawals x set
    state = 'rejected', step_seq = x.seq, step_path = '{rejected}',
    step_detail = jsonb_build_array(jsonb_build_object('reason_code', 'rejected', 'reason', reject.reason)),
    step_by = session_user, failure_reason = v_said, fencing_token = x.fencing_token + 1
   where x.operation_id = w.operation_id;
  return 'rejected';
end
$$;
comment on function sluice.reject is 'Refuses a withdrawal that was not handed to its rail yet, and lets its funds go. Repeating it with the same reason is free.';

create function sluice.cancel(operation_id uuid, reason text) returns sluice.state
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  w sluice.withdrawals;
  v_to sluice.state;
  v_path sluice.state[] := '{}';
  v_detail jsonb;
begin
  perform sluice.require('operation_id', cancel.operation_id::text), sluice.require_reason(cancel.reason);
  w := sluice.lock_withdrawal(cancel.operation_id);
  if w.cancel_reason is not null then
    perform sluice.require_same_reason(w.operation_id, w.cancel_reason, cancel.reason);
    return w.state;
  end if;
  if sluice.is_terminal(w.state::text) then
    raise exception 'withdrawal % is %: it never changes again', w.operation_id, w.state using errcode = 'SL011';
  end if;
  v_to := case
    when exists (
      select from sluice.envelopes e where e.operation_id = w.operation_id and not sluice.is_spent(e.fate, e.receipt)) then w.state
    when w.state in ('requested', 'validated') then 'rejected'
    else 'failed'
  end::sluice.state;
  -- A wish is no step; the step that it leads to says why.
  if v_to = w.state then
    insert into sluice.changes (what, after, reason)
    values ('cancel', jsonb_build_object('operation_id', w.operation_id, 'state', w.state), cancel.reason);
  else
    v_path := sluice.shortest_path(w.state::text, v_to::text)::sluice.state[];
    v_detail := sluice.details(
      cardinality(v_path),
      sluice.cancellation(cancel.reason) || coalesce((select v.evidence from sluice.evidence_of(array[w.operation_id]) v), '{}'));
  end if;
  update sluice.withdrawals x set
    state = v_to, step_seq = x.seq, step_path = v_path, step_detail = v_detail, step_by = session_user,
    cancel_reason = cancel.reason,
    failure_reason = case when v_to <> w.state then 'cancelled: ' || cancel.reason end,
    held_by = case when v_to = w.state then 'cancelled' end,
    -- Whoever holds it signs and sends nothing any more.
    leased_by = null,
    fencing_token = x.fencing_token + 1
   where x.operation_id = w.operation_id;
  return v_to;
end
$$;
comment on function sluice.cancel is
  'Ends a withdrawal that nothing built can pay: before building as rejected, after as failed. While an envelope is live it is a wish: nothing is sent any more, and it fails if the chain shows that it was not paid.';
