-- The guard of the ledger: an account's balance follows from postings and changes by nothing else, a posting is what its cause says,
-- a hold is its withdrawal's, and no account gives what it has not. All of it set-based, a statement at a time.
--
-- Whoever needs several accounts locks them in the order of asset and account, after the withdrawals they are for.

-- Locks these accounts. One asked for twice is locked once; one that is not there is left out.
create function sluice.lock_accounts(accounts text[], assets text[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform from sluice.accounts a
    where (a.account, a.asset) in (select u.account, u.asset from unnest(lock_accounts.accounts, lock_accounts.assets) u (account, asset))
    order by a.asset, a.account
      for no key update;
end
$$;

-- Locks the accounts that these withdrawals name, and waits for others no longer than a statement of theirs takes.
create function sluice.lock_accounts_of(ids uuid[]) returns void
language plpgsql set search_path = pg_catalog, pg_temp set lock_timeout = '200ms'
as $$
begin
  perform sluice.lock_accounts(array_agg(w.account), array_agg(w.asset))
     from sluice.withdrawals w
    where w.operation_id = any (lock_accounts_of.ids) and w.account is not null;
end
$$;

-- Of these withdrawals those that nobody else holds, nor an account of theirs: both are locked, and nobody is waited for. A claim, or a
-- block, that waited for a forgotten transaction would wait for everybody.
create function sluice.lock_what_is_free(ids uuid[]) returns uuid[]
language plpgsql set search_path = pg_catalog, pg_temp
as $$
declare
  v_free uuid[];
  v_accounts text[];
begin
  v_free := array(
    select w.operation_id from sluice.withdrawals w where w.operation_id = any (lock_what_is_free.ids) order by w.operation_id for update skip locked);
  if not exists (select from sluice.withdrawals w where w.operation_id = any (v_free) and w.account is not null) then
    return v_free;
  end if;
  v_accounts := array(
    select a.asset || chr(10) || a.account
      from sluice.accounts a
     where (a.account, a.asset) in (
       select w.account, w.asset from sluice.withdrawals w where w.operation_id = any (v_free) and w.account is not null)
     order by a.asset, a.account
       for no key update skip locked);
  return array(
    select w.operation_id
      from sluice.withdrawals w
     where w.operation_id = any (v_free)
       and (w.account is null
            or w.asset || chr(10) || w.account in (select unnest(v_accounts))
            or not exists (select from sluice.accounts a where a.account = w.account and a.asset = w.asset))
     order by w.operation_id);
end
$$;

-- What is held of an account, but for these withdrawals. Without a SET clause, so that it is inlined.
create function sluice.held_of(account text, asset text, but_for uuid[]) returns numeric
stable language sql
as $$
  select coalesce(sum(h.units), 0)
    from sluice.holds h
   where h.account = held_of.account and h.asset = held_of.asset and h.ended is null
     and h.operation_id not in (select unnest(held_of.but_for))
$$;

------------------------------------------------------------------------------------------------------------ accounts

create function sluice.accounts_before_insert() returns trigger
language plpgsql
as $$
begin
  if new.opened_at is null then
    if new.posted <> 0 then
      raise exception 'account %: begins with nothing', new.account using errcode = 'SL011', hint = 'sluice.deposit credits it.';
    end if;
    new.opened_at := sluice.now();
  end if;
  return new;
end
$$;

create function sluice.accounts_before_update() returns trigger
language plpgsql
as $$
begin
  if (new.account, new.asset, new.opened_at, new.opened_by) is distinct from (old.account, old.asset, old.opened_at, old.opened_by) then
    raise exception 'account %: what it is never changes', old.account using errcode = 'SL011';
  end if;
  if new.posted <> old.posted and pg_catalog.pg_trigger_depth() = 1 then
    raise exception 'account %: its balance changes by postings alone', old.account
      using errcode = 'SL011', hint = 'sluice.deposit credits it; withdrawals debit it.';
  end if;
  return new;
end
$$;

------------------------------------------------------------------------------------------------------------ postings

create function sluice.postings_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  v_culprit record;
  v_causes uuid[];
begin
  select f.posting_id, t.fault into v_culprit
    from fresh f
    -- One look for each, whatever a plan made of an empty table says.
    left join lateral (select * from sluice.withdrawals x where x.operation_id = f.operation_id limit 1) w on true
   cross join lateral (
     select case f.kind
              when 'deposit' then case when f.posting_id <> sluice.deposit_id(f.reference) then 'it is not its reference''s' end
              else case
                when w.operation_id is null then 'there is no such withdrawal'
                when f.posting_id <> sluice.withdrawal_posting_id(w.operation_id) then 'it is not its withdrawal''s'
                when (f.asset, f.units) is distinct from (w.asset, w.amount_units) then 'its withdrawal asks for something else'
                when f.kind = 'transfer' and w.rail is distinct from 'internal' then 'its withdrawal goes over the chain'
                when f.kind = 'transfer' and (f.debit, f.credit, w.state) is distinct from (coalesce(w.account, 'outside'), w.credit_account, 'validated'::sluice.state)
                  then 'its withdrawal asks for something else'
                when f.kind = 'capture' and w.rail is not distinct from 'internal' then 'its withdrawal stays on the ledger'
                when f.kind = 'capture' and (f.debit, w.state) is distinct from (w.account, 'confirmed'::sluice.state)
                  then 'its withdrawal is not paid from this account'
              end
            end as fault
   ) t
   where sluice.is_fresh(tg_table_name, uuid_send(f.posting_id))
   order by t.fault nulls last;
  if v_culprit.fault is not null then
    raise exception 'posting %: %', v_culprit.posting_id, v_culprit.fault using errcode = 'SL014';
  end if;

  -- A restored posting is in its accounts' balances already.
  perform sluice.lock_accounts(array_agg(t.account), array_agg(f.asset))
     from fresh f
    cross join lateral (values (f.debit), (f.credit)) t (account)
    where sluice.is_fresh(tg_table_name, uuid_send(f.posting_id));
  with moved as (
    select t.account, f.asset, sum(t.units) as units
      from fresh f
     cross join lateral (values (f.debit, -f.units), (f.credit, f.units)) t (account, units)
     where t.account <> 'outside' and sluice.is_fresh(tg_table_name, uuid_send(f.posting_id))
     group by t.account, f.asset
  ),
  booked as (
    update sluice.accounts a set posted = a.posted + m.units
      from moved m
     where a.account = m.account and a.asset = m.asset and a.closed_at is null
    returning a.account, a.asset
  )
  select m.account, m.asset into v_culprit
    from moved m
    left join booked b on b.account = m.account and b.asset = m.asset
   where b.account is null;
  if found then
    raise exception 'account: "%" is not open for %', v_culprit.account, v_culprit.asset
      using errcode = 'SL031', hint = 'sluice.open_account opens it.';
  end if;
  v_causes := array(select f.operation_id from fresh f where f.operation_id is not null);
  select a.account, a.asset into v_culprit
    from (select distinct f.debit, f.asset from fresh f where sluice.is_fresh(tg_table_name, uuid_send(f.posting_id))) d
    join sluice.accounts a on a.account = d.debit and a.asset = d.asset
   where a.posted < sluice.held_of(d.debit, d.asset, v_causes);
  if found then
    raise exception 'account: "%" has fewer % than its other withdrawals hold', v_culprit.account, v_culprit.asset using errcode = 'SL032';
  end if;
  perform sluice.forget_fresh(tg_table_name, (select array_agg(uuid_send(f.posting_id)) from fresh f));
  return null;
end
$$;

--------------------------------------------------------------------------------------------------------------- holds

create function sluice.holds_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  v_culprit record;
begin
  select f.operation_id into v_culprit
    from fresh f
    left join lateral (select * from sluice.withdrawals x where x.operation_id = f.operation_id limit 1) w on true
   where sluice.is_fresh(tg_table_name, uuid_send(f.operation_id))
     and (f.ended is not null or w.state not in ('requested', 'validated')
          or (f.account, f.asset, f.units) is distinct from (w.account, w.asset, w.amount_units));
  if found then
    raise exception 'hold of withdrawal %: the withdrawal asks for something else', v_culprit.operation_id using errcode = 'SL014';
  end if;
  perform sluice.lock_accounts(array_agg(f.account), array_agg(f.asset)) from fresh f where sluice.is_fresh(tg_table_name, uuid_send(f.operation_id));
  select d.account, d.asset into v_culprit
    from (select distinct f.account, f.asset from fresh f where sluice.is_fresh(tg_table_name, uuid_send(f.operation_id))) d
    left join sluice.accounts a on a.account = d.account and a.asset = d.asset and a.closed_at is null
   where a.posted is null or a.posted < sluice.held_of(d.account, d.asset, '{}');
  if found then
    raise exception 'account: "%" has not as much % available', v_culprit.account, v_culprit.asset using errcode = 'SL032';
  end if;
  -- A lock alone leaves no trace: REPEATABLE READ would take it next and add up the holds of its older snapshot.
  update sluice.accounts a set placed = a.placed + 1
    from (select distinct f.account, f.asset from fresh f where sluice.is_fresh(tg_table_name, uuid_send(f.operation_id))) d
   where a.account = d.account and a.asset = d.asset;
  perform sluice.forget_fresh(tg_table_name, (select array_agg(uuid_send(f.operation_id)) from fresh f));
  return null;
end
$$;

create function sluice.holds_after_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  v_culprit record;
begin
  select o.operation_id into v_culprit
    from before_update o
    left join after_update n on n.operation_id = o.operation_id
    left join lateral (select x.state from sluice.withdrawals x where x.operation_id = o.operation_id limit 1) w on true
   where (n.account, n.asset, n.units, n.placed_at) is distinct from (o.account, o.asset, o.units, o.placed_at)
      or (o.ended is not null and (n.ended, n.ended_at) is distinct from (o.ended, o.ended_at))
      or (o.ended is null and n.ended = 'captured' and w.state is distinct from 'confirmed')
      or (o.ended is null and n.ended = 'released' and w.state <> 'failed' and w.state <> 'rejected');
  if found then
    raise exception 'hold of withdrawal %: it ends once, as its withdrawal ends', v_culprit.operation_id using errcode = 'SL011';
  end if;
  return null;
end
$$;

create trigger b_begin before insert on sluice.accounts
  for each row execute function sluice.accounts_before_insert();
create trigger b_balance before update on sluice.accounts
  for each row execute function sluice.accounts_before_update();
create trigger never_removed before delete or truncate on sluice.accounts
  for each statement execute function sluice.refuse('postings name it');
create trigger b_mark_fresh before insert on sluice.postings
  for each row execute function sluice.mark_fresh('booked_at');
create trigger c_book after insert on sluice.postings
  referencing new table as fresh
  for each statement execute function sluice.postings_after_insert();
create trigger never_changed before update or delete or truncate on sluice.postings
  for each statement execute function sluice.refuse('what is booked stays booked');
create trigger b_mark_fresh before insert on sluice.holds
  for each row execute function sluice.mark_fresh('placed_at');
create trigger c_place after insert on sluice.holds
  referencing new table as fresh
  for each statement execute function sluice.holds_after_insert();
create trigger c_end after update on sluice.holds
  referencing old table as before_update new table as after_update
  for each statement execute function sluice.holds_after_update();
create trigger never_removed before delete or truncate on sluice.holds
  for each statement execute function sluice.refuse('a withdrawal''s hold is a part of its log');
create trigger never_changed before update or delete or truncate on sluice.approvals
  for each statement execute function sluice.refuse('the log is append-only');
