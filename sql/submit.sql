-- Intake by function. Both forms are one INSERT with ON CONFLICT DO NOTHING into sluice.withdrawals, so that there is one way
-- in: its triggers check, log and compare.

create function sluice.submit(
  operation_id uuid, to_address text, amount text, asset text default 'USDT-TRC20', account text default null,
  requested_by text default null
) returns setof sluice.submitted rows 1
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_created boolean;
begin
  insert into sluice.withdrawals (operation_id, to_address, amount, asset, account, requested_by)
  values (submit.operation_id, submit.to_address, submit.amount, submit.asset, submit.account, submit.requested_by)
  on conflict (operation_id) do nothing;
  v_created := found;
  return query
  select w.operation_id, w.state, v_created, w.to_address, w.destination, w.amount::text, w.asset, w.amount_units, w.account,
         (select encode(e.txid, 'hex') from sluice.envelopes e where e.operation_id = w.operation_id order by e.attempt desc limit 1)
    from sluice.withdrawals w
   where w.operation_id = submit.operation_id;
end
$$;
comment on function sluice.submit(uuid, text, text, text, text, text) is
  'Takes a withdrawal in. A repeat with the same meaning answers with the first call''s values and the present state; one with another is SL001.';

create function sluice.submit(payload jsonb) returns setof sluice.submitted rows 1
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_key text;
  v_type text;
begin
  if submit.payload is null or jsonb_typeof(submit.payload) <> 'object' then
    raise exception 'payload: must be a JSON object' using errcode = 'SL005';
  end if;
  for v_key, v_type in select e.key, jsonb_typeof(e.value) from jsonb_each(submit.payload) e order by e.key loop
    if v_key not in ('operation_id', 'to_address', 'amount', 'asset', 'account', 'requested_by') then
      raise exception 'payload: unknown key "%"', left(v_key, 40)
        using errcode = 'SL005', hint = 'Known are operation_id, to_address, amount, asset, account, requested_by.';
    end if;
    if v_key = 'amount' and v_type = 'number' then
      raise exception 'amount: is a JSON number' using errcode = 'SL003', hint = 'Give a string, such as "12.50": a number may have passed through a float.';
    end if;
    if v_type not in ('string', 'null') then
      raise exception '%: must be a string', v_key
        using errcode = case v_key when 'amount' then 'SL003' when 'to_address' then 'SL002' else 'SL005' end;
    end if;
  end loop;
  if submit.payload ->> 'operation_id' is null then
    raise exception 'operation_id is NULL' using errcode = 'SL005';
  end if;
  if submit.payload ->> 'operation_id' !~* '^[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}$' then
    raise exception 'operation_id: "%" is no UUID', left(submit.payload ->> 'operation_id', 60) using errcode = 'SL005';
  end if;
  return query
  select *
    from sluice.submit(
           (submit.payload ->> 'operation_id')::uuid, submit.payload ->> 'to_address', submit.payload ->> 'amount',
           coalesce(submit.payload ->> 'asset', 'USDT-TRC20'), submit.payload ->> 'account', submit.payload ->> 'requested_by');
end
$$;
comment on function sluice.submit(jsonb) is 'The same, from a JSON object with the same keys. The amount must be a string.';
