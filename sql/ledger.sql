-- The ledger: accounts per asset, credits from outside, and what an account has. Withdrawals move the rest (rails.sql, guard.sql).

create function sluice.require_account(account text) returns void
immutable parallel safe language plpgsql
as $$
begin
  perform sluice.require('account', require_account.account), sluice.require_short('account', require_account.account, 200);
  if not sluice.is_account_name(require_account.account) then
    raise exception 'account: "%" is what the ledger calls all that is no account', require_account.account using errcode = 'SL005', hint = 'Take another name.';
  end if;
end
$$;

create function sluice.require_asset(asset text) returns void
stable language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  perform sluice.require('asset', require_asset.asset);
  if not exists (select from sluice.assets a where a.asset = require_asset.asset) then
    raise exception 'asset: "%" is not set up', left(require_asset.asset, 40)
      using errcode = 'SL004', hint = 'Set it up with sluice.set_asset, or name one that is.';
  end if;
end
$$;

create function sluice.not_open(account text, asset text) returns void
language plpgsql set search_path = pg_catalog, pg_temp
as $$
begin
  raise exception 'account: "%" is not open for %', left(not_open.account, 60), not_open.asset
    using errcode = 'SL031', hint = 'sluice.open_account opens it.';
end
$$;

-- The ids of postings, fixed before they are posted.
create function sluice.withdrawal_posting_id(operation_id uuid) returns uuid
immutable strict parallel safe language sql
as $$ select sluice.posting_id('withdrawal', uuid_send(operation_id)) $$;

create function sluice.deposit_id(reference text) returns uuid
immutable strict parallel safe language sql
as $$ select sluice.posting_id('deposit', convert_to(reference, 'UTF8')) $$;

create function sluice.open_account(account text, asset text default 'USDT-TRC20') returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  perform sluice.require_account(open_account.account), sluice.require_asset(open_account.asset);
  insert into sluice.accounts as a (account, asset) values (open_account.account, open_account.asset)
  on conflict (account, asset) do update set closed_at = null where a.closed_at is not null;
  return found;
end
$$;
comment on function sluice.open_account is 'Opens an account for an asset, or opens a closed one again. Returns false where it was open.';

create function sluice.close_account(account text, asset text default 'USDT-TRC20') returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_account sluice.accounts;
  v_holds bigint;
begin
  perform sluice.require_account(close_account.account), sluice.require_asset(close_account.asset);
  select * into v_account from sluice.accounts a
   where a.account = close_account.account and a.asset = close_account.asset for no key update;
  if not found then
    perform sluice.not_open(close_account.account, close_account.asset);
  end if;
  if v_account.closed_at is not null then
    return false;
  end if;
  select count(*) into v_holds from sluice.holds h
   where h.account = close_account.account and h.asset = close_account.asset and h.ended is null;
  if v_holds > 0 then
    raise exception 'account: "%" has % withdrawals under way', close_account.account, v_holds
      using errcode = 'SL032', hint = 'Wait for them, or cancel them.';
  end if;
  if v_account.posted <> 0 then
    raise exception 'account: "%" still has % base units of %', close_account.account, v_account.posted, close_account.asset
      using errcode = 'SL032', hint = 'Withdraw them first.';
  end if;
  update sluice.accounts a set closed_at = sluice.now() where a.account = close_account.account and a.asset = close_account.asset;
  return true;
end
$$;
comment on function sluice.close_account is 'Closes an account that is empty and has nothing under way: nothing is credited to it any more. Returns false where it was closed.';

create function sluice.deposit(account text, amount text, reference text, asset text default 'USDT-TRC20') returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_units numeric;
  v_posted numeric;
  v_stands sluice.postings;
  v_differs text;
begin
  perform sluice.require_account(deposit.account), sluice.require('amount', deposit.amount),
          sluice.require('reference', deposit.reference), sluice.require_short('reference', deposit.reference, 200),
          sluice.require_asset(deposit.asset);
  v_units := sluice.amount_argument(deposit.amount, (select a.decimals from sluice.assets a where a.asset = deposit.asset), 'amount');
  -- A replay is judged before all else: what was once booked is answered for ever.
  select * into v_stands from sluice.postings p where p.posting_id = sluice.deposit_id(deposit.reference);
  if not found then
    if v_units < 1 then
      raise exception 'amount: must be more than zero' using errcode = 'SL007', hint = 'Give a larger amount.';
    end if;
    if v_units >= 1e38 then
      raise exception 'amount: exceeds numeric(38,0) in base units' using errcode = 'SL007', hint = 'Give a smaller amount.';
    end if;
    select a.posted into v_posted from sluice.accounts a
     where a.account = deposit.account and a.asset = deposit.asset and a.closed_at is null for no key update;
    if not found then
      perform sluice.not_open(deposit.account, deposit.asset);
    end if;
    if v_posted + v_units >= 1e38 then
      raise exception 'amount: account "%" cannot hold that much more', deposit.account using errcode = 'SL032', hint = 'Its balance would exceed numeric(38,0) in base units.';
    end if;
    insert into sluice.postings (posting_id, kind, debit, credit, asset, units, reference)
    values (sluice.deposit_id(deposit.reference), 'deposit', 'outside', deposit.account, deposit.asset, v_units, deposit.reference)
    on conflict (posting_id) do nothing;
    if found then
      return true;
    end if;
    -- A twin was faster, and is committed by now.
    select * into v_stands from sluice.postings p where p.posting_id = sluice.deposit_id(deposit.reference);
  end if;
  v_differs := concat_ws(
    ', ',
    case when v_stands.credit <> deposit.account then 'account' end,
    case when v_stands.units <> v_units then 'amount' end,
    case when v_stands.asset <> deposit.asset then 'asset' end);
  if v_differs <> '' then
    raise exception 'reference: "%" stands already, with another %', left(deposit.reference, 60), v_differs
      using errcode = 'SL001', hint = 'The first call holds. Use a new reference for another deposit.';
  end if;
  return false;
end
$$;
comment on function sluice.deposit is 'Credits an account from outside, once a reference. Returns false for a repeat with the same meaning; one with another is SL001.';

create function sluice.balance(account text, asset text default 'USDT-TRC20') returns table (posted numeric, held numeric, available numeric)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
begin
  perform sluice.require_account(balance.account), sluice.require_asset(balance.asset);
  select a.posted, sluice.held_of(a.account, a.asset, '{}') into posted, held
    from sluice.accounts a
   where a.account = balance.account and a.asset = balance.asset;
  if not found then
    perform sluice.not_open(balance.account, balance.asset);
  end if;
  available := posted - held;
  return next;
end
$$;
comment on function sluice.balance is 'What an account has, in base units: posted, held by withdrawals under way, and available: the one less the other.';
