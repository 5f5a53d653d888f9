-- Custody: whose address of ours an address is. The key is the 21 bytes, so that the base58, the hex and a padded form of an address
-- are one, and nothing else is. An app that keeps its own address book names its function in the setting custody_function.

create function sluice.set_custody(address text, account text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_address text;
  v_old sluice.custody;
  v_new sluice.custody;
begin
  -- Beside others of its kind, and not beside a set-up that checks the same.
  perform from sluice.settings for share;
  perform sluice.require('address', set_custody.address), sluice.require_account(set_custody.account);
  v_address := sluice.address_argument(set_custody.address, 'address');
  if v_address = sluice.zero_address() then
    raise exception 'address: is the zero address' using errcode = 'SL008', hint = 'It is nobody''s.';
  end if;
  if exists (select from sluice.assets a where a.contract = v_address) then
    raise exception 'address: is a token''s contract' using errcode = 'SL008';
  end if;
  if exists (select from sluice.wallets w where w.address = v_address) then
    raise exception 'address: is one of our own wallets' using errcode = 'SL008', hint = 'Wallets pay; custody is of the addresses of accounts.';
  end if;
  select * into v_old from sluice.custody c where c.address = sluice.address_bytes(v_address);
  if found and v_old.account = set_custody.account then
    return;
  end if;
  insert into sluice.custody as c (address, account) values (sluice.address_bytes(v_address), set_custody.account)
  on conflict (address) do update set account = excluded.account, set_at = excluded.set_at, set_by = excluded.set_by
  returning * into v_new;
  insert into sluice.changes (what, before, after)
  values ('custody', case when v_old.address is not null then jsonb_build_object('address', v_address, 'account', v_old.account) end,
          jsonb_build_object('address', v_address, 'account', v_new.account));
end
$$;
comment on function sluice.set_custody is 'Says whose address of ours an address is: withdrawals to it are credited to that account and touch no chain.';

create function sluice.drop_custody(address text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_address text;
  v_account text;
begin
  perform sluice.require('address', drop_custody.address);
  v_address := sluice.address_argument(drop_custody.address, 'address');
  delete from sluice.custody c where c.address = sluice.address_bytes(v_address) returning c.account into v_account;
  if not found then
    return false;
  end if;
  insert into sluice.changes (what, before) values ('custody', jsonb_build_object('address', v_address, 'account', v_account));
  return true;
end
$$;
comment on function sluice.drop_custody is 'Takes an address out of custody. What is routed already keeps its route. Returns whether it was there.';

-- The default of the setting custody_function.
create function sluice.account_of(address bytea, asset text) returns text
language sql stable
as $$ select c.account from sluice.custody c where c.address = account_of.address $$;
comment on function sluice.account_of is 'Whose address of ours an address is, by the table sluice.custody; NULL: nobody''s.';

-- The function that custody_function names, as it may be called; raises where it may not. It is called with the rights of
-- sluice_owner, so it must bring its own (SECURITY DEFINER), or be of somebody who has these anyway.
create function sluice.custody_call(name text) returns text
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_oid oid;
  v_function record;
begin
  begin
    v_oid := to_regprocedure(custody_call.name || '(bytea, text)');
  exception when syntax_error or invalid_name or insufficient_privilege then
    v_oid := null;
  end;
  select p.oid, n.nspname, p.proname, p.prosecdef, p.prorettype, r.rolsuper, r.rolname into v_function
    from pg_proc p
    join pg_namespace n on n.oid = p.pronamespace
    join pg_roles r on r.oid = p.proowner
   where p.oid = v_oid and p.prokind = 'f' and not p.proretset;
  if not found or v_function.prorettype <> 'text'::regtype then
    raise exception 'custody_function: there is no function %(address bytea, asset text) returning text that sluice_owner may see', left(custody_call.name, 100)
      using errcode = 'SL005', hint = 'Name it with its schema, as in myapp.account_of, and GRANT USAGE on that to sluice_owner.';
  end if;
  if not v_function.prosecdef and not v_function.rolsuper and v_function.rolname <> 'sluice_owner' then
    raise exception 'custody_function: %.% would run with the rights of sluice_owner', v_function.nspname, v_function.proname
      using errcode = 'SL005', hint = 'Make it SECURITY DEFINER, so that it runs with its owner''s.';
  end if;
  if not has_schema_privilege('sluice_owner', v_function.nspname, 'usage')
     or not has_function_privilege('sluice_owner', v_function.oid, 'execute') then
    raise exception 'custody_function: sluice_owner may not call %.%', v_function.nspname, v_function.proname
      using errcode = 'SL005', hint = 'GRANT USAGE on its schema and EXECUTE on it to sluice_owner.';
  end if;
  return format('%I.%I', v_function.nspname, v_function.proname);
end
$$;

-- Whose addresses these are: the destinations of withdrawals, in their assets. A row for each that is somebody's of ours.
create function sluice.custodians(ids uuid[]) returns table (operation_id uuid, account text)
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_function text := (select s.custody_function from sluice.settings s);
begin
  if v_function = 'sluice.account_of' then
    if exists (select from sluice.custody) then
      return query
      select w.operation_id, c.account
        from sluice.withdrawals w
        join sluice.custody c on c.address = sluice.address_bytes(w.to_address)
       where w.operation_id = any (custodians.ids);
    end if;
    return;
  end if;
  return query execute format(
    'select f.operation_id, f.account
       from (select w.operation_id, %s(sluice.address_bytes(w.to_address), w.asset) as account
               from sluice.withdrawals w
              where w.operation_id = any ($1)
             offset 0) f
      where f.account is not null', sluice.custody_call(v_function))
    using custodians.ids;
end
$$;
