-- What an operator sets up: assets, wallets, settings, the chain to follow, pauses. Each function checks its arguments,
-- names the one that is wrong, and logs what it changes.

-- Raises SL005 for an argument that is missing or blank.
create function sluice.require(argument text, value text) returns void
immutable parallel safe language plpgsql
as $$
begin
  if value is null or btrim(value, E' \t\r\n') = '' then
    raise exception '%: is missing', argument using errcode = 'SL005', hint = 'Give a value for ' || argument || '.';
  end if;
end
$$;

-- Raises SL005 for an argument that is longer than what it is there for. Nothing that is filed is without a bound.
create function sluice.require_short(argument text, value text, characters int) returns void
immutable parallel safe language plpgsql
as $$
begin
  if length(value) > characters then
    raise exception '%: longer than % characters', argument, characters using errcode = 'SL005';
  end if;
end
$$;

-- Checks what a person gives as the reason of a change.
create function sluice.require_reason(reason text) returns void
immutable parallel safe language plpgsql
as $$
begin
  perform sluice.require('reason', reason), sluice.require_short('reason', reason, 1000);
end
$$;

-- One set-up at a time: each of these functions checks what another may be changing. The settings' row stands for all of it.
create function sluice.alone() returns void
volatile language sql set search_path = pg_catalog, pg_temp
as $$ select from sluice.settings for update $$;

create function sluice.set_asset(
  asset text, contract text, decimals int, minimum text, maximum text, fee_limit_sun bigint, depth int default 0,
  reverts_on_failure boolean default null
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_contract text;
  v_minimum numeric;
  v_maximum numeric;
begin
  perform sluice.alone();
  perform sluice.require('asset', set_asset.asset), sluice.require('contract', set_asset.contract),
          sluice.require('minimum', set_asset.minimum), sluice.require('maximum', set_asset.maximum),
          sluice.require('decimals', set_asset.decimals::text),
          sluice.require('fee_limit_sun', set_asset.fee_limit_sun::text), sluice.require('depth', set_asset.depth::text);
  if set_asset.reverts_on_failure is not true then
    raise exception 'reverts_on_failure: must be true'
      using errcode = 'SL005',
            hint = 'A token that reports a failed transfer by returning false, and does not revert, would look paid: it cannot be withdrawn. Say true only after testing the token.';
  end if;
  if set_asset.asset !~ '^[!-~]([ -~]{0,38}[!-~])?$' then
    raise exception 'asset: must be 1 to 40 printable ASCII characters' using errcode = 'SL005';
  end if;
  v_contract := sluice.address_argument(set_asset.contract, 'contract');
  if v_contract = sluice.zero_address() then
    raise exception 'contract: is the zero address' using errcode = 'SL008';
  end if;
  if exists (select from sluice.wallets w where w.address = v_contract) then
    raise exception 'contract: is one of our own wallets' using errcode = 'SL008';
  end if;
  if set_asset.decimals not between 0 and 38 then
    raise exception 'decimals: must be between 0 and 38' using errcode = 'SL005';
  end if;
  v_minimum := sluice.amount_argument(set_asset.minimum, set_asset.decimals, 'minimum');
  v_maximum := sluice.amount_argument(set_asset.maximum, set_asset.decimals, 'maximum');
  if v_minimum < 1 then
    raise exception 'minimum: must be more than zero' using errcode = 'SL005';
  end if;
  if v_maximum < v_minimum then
    raise exception 'maximum: is below the minimum' using errcode = 'SL005';
  end if;
  if v_maximum >= 1e38 then
    raise exception 'maximum: exceeds numeric(38,0) in base units' using errcode = 'SL005';
  end if;
  if set_asset.fee_limit_sun not between 1 and 15000000000 then
    raise exception 'fee_limit_sun: must be between 1 and 15000000000 (15,000 TRX)' using errcode = 'SL005';
  end if;
  if set_asset.depth not between 0 and 100000 then
    raise exception 'depth: must be between 0 and 100000 blocks' using errcode = 'SL005';
  end if;
  if exists (select from sluice.assets a where a.asset = set_asset.asset and a.decimals <> set_asset.decimals)
     and exists (select from sluice.postings p where p.asset = set_asset.asset) then
    raise exception 'decimals: the ledger has postings in base units of the present ones'
      using errcode = 'SL005', hint = 'Set up the token under another name.';
  end if;
  if exists (select from sluice.custody c where c.address = sluice.address_bytes(v_contract)) then
    raise exception 'contract: is in custody as an address of an account' using errcode = 'SL008';
  end if;
  update sluice.assets a set
    contract = v_contract, decimals = set_asset.decimals, minimum_units = v_minimum, maximum_units = v_maximum,
    fee_limit_sun = set_asset.fee_limit_sun, depth = set_asset.depth, reverts_on_failure = true, changed_by = session_user
   where a.asset = set_asset.asset;
  if not found then
    insert into sluice.assets (asset, contract, decimals, minimum_units, maximum_units, fee_limit_sun, depth, reverts_on_failure)
    values (set_asset.asset, v_contract, set_asset.decimals, v_minimum, v_maximum, set_asset.fee_limit_sun, set_asset.depth, true);
    insert into sluice.approval_rules (asset, name, at_least_units, approvals) values (set_asset.asset, 'default', 0, 0) on conflict do nothing;
    insert into sluice.changes (what, after)
    select 'assets', to_jsonb(a) from sluice.assets a where a.asset = set_asset.asset;
  end if;
end
$$;
comment on function sluice.set_asset is 'Sets up a TRC-20 token, or changes one. minimum and maximum are decimals; the fee limit is in sun.';

create function sluice.add_wallet(
  address text, signer text, signer_address text default null, permission_id int default 0, live_window int default 6000
) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_address text;
  v_signer_address text;
  v_genesis bytea;
begin
  perform sluice.alone();
  perform sluice.require('address', add_wallet.address), sluice.require('signer', add_wallet.signer),
          sluice.require('permission_id', add_wallet.permission_id::text),
          sluice.require('live_window', add_wallet.live_window::text);
  v_address := sluice.address_argument(add_wallet.address, 'address');
  v_signer_address := coalesce(sluice.address_argument(add_wallet.signer_address, 'signer_address'), v_address);
  if v_address = sluice.zero_address() then
    raise exception 'address: is the zero address' using errcode = 'SL008';
  end if;
  if v_signer_address = sluice.zero_address() then
    raise exception 'signer_address: is the zero address' using errcode = 'SL008', hint = 'Nobody has its key.';
  end if;
  if exists (select from sluice.assets a where a.contract = v_address) then
    raise exception 'address: is a token''s contract' using errcode = 'SL008';
  end if;
  if exists (select from sluice.custody c where c.address = sluice.address_bytes(v_address)) then
    raise exception 'address: is in custody as an address of an account' using errcode = 'SL008', hint = 'sluice.drop_custody takes it out.';
  end if;
  if add_wallet.signer not in ('secp256k1', 'hmac') then
    raise exception 'signer: must be secp256k1, or hmac for a mock' using errcode = 'SL005';
  end if;
  if not (add_wallet.permission_id = 0 or add_wallet.permission_id between 2 and 9) then
    raise exception 'permission_id: must be 0 (owner) or 2 to 9 (active)' using errcode = 'SL005';
  end if;
  if add_wallet.live_window not between 1 and 1000000 then
    raise exception 'live_window: must be between 1 and 1000000' using errcode = 'SL005';
  end if;
  select c.genesis_id into v_genesis from sluice.chain c;
  if add_wallet.signer = 'hmac' and found and not sluice.takes_mock_signatures(v_genesis) then
    raise exception 'signer: hmac is a mock, and this database follows TRON''s main network or Nile'
      using errcode = 'SL005', hint = 'Add the wallet with signer secp256k1.';
  end if;
  if exists (select from sluice.wallets w where w.address = v_address) then
    raise exception 'address: % is a wallet already', v_address
      using errcode = 'SL011', hint = 'Wallets are only ever added. To stop using one, pause it.';
  end if;
  insert into sluice.wallets (address, signer, signer_address, permission_id, live_window)
  values (v_address, add_wallet.signer, v_signer_address, add_wallet.permission_id, add_wallet.live_window);
  insert into sluice.changes (what, after)
  select 'wallets', to_jsonb(w) from sluice.wallets w where w.address = v_address;
end
$$;
comment on function sluice.add_wallet is 'Adds an address that pays. signer: secp256k1, or hmac for a mock on a chain of no value.';

create function sluice.set_setting(name text, value text, reason text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_type text;
  v_value text := set_setting.value;
begin
  perform sluice.require('name', set_setting.name), sluice.require('value', set_setting.value),
          sluice.require_reason(set_setting.reason);
  select format_type(a.atttypid, a.atttypmod) into v_type
    from pg_attribute a
   where a.attrelid = 'sluice.settings'::regclass and a.attname = set_setting.name and a.attnum > 0 and not a.attisdropped
     and a.attname not in ('only_row', 'changed_by', 'change_reason');
  if not found then
    raise exception 'name: there is no setting "%"', left(set_setting.name, 60)
      using errcode = 'SL005', hint = 'select * from sluice.settings shows them.';
  end if;
  if set_setting.name = 'custody_function' then
    v_value := sluice.custody_call(set_setting.value);
  end if;
  begin
    execute format('update sluice.settings set %I = $1::%s, changed_by = session_user, change_reason = $2', set_setting.name, v_type)
      using v_value, set_setting.reason;
  exception
    when check_violation then
      raise exception 'value: % = % is out of bounds', set_setting.name, left(set_setting.value, 60)
        using errcode = 'SL005', hint = 'time_to_live: from freshness + 90 s to 600 s. The bounds are the constraints of sluice.settings.';
    when data_exception then
      raise exception 'value: "%" is no %', left(set_setting.value, 60), v_type using errcode = 'SL005';
  end;
end
$$;
comment on function sluice.set_setting is 'Changes one setting. The change and its reason are logged in sluice.changes.';

create function sluice.follow_from(block bytea, genesis_id bytea) returns bigint
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_block jsonb;
  v_number bigint;
begin
  perform sluice.alone();
  if follow_from.block is null then
    raise exception 'block: is missing' using errcode = 'SL005';
  end if;
  if follow_from.genesis_id is null or octet_length(follow_from.genesis_id) <> 32 then
    raise exception 'genesis_id: must be the 32 bytes of block 0''s id' using errcode = 'SL005';
  end if;
  if exists (select from sluice.chain) then
    raise exception 'a chain is followed already' using errcode = 'SL022', hint = 'It is named once; sluice.chain shows it.';
  end if;
  v_block := sluice.decode_block(follow_from.block);
  v_number := (v_block ->> 'number')::bigint;
  if not (v_block ->> 'root_holds')::boolean then
    raise exception 'block: its transactions do not give its root' using errcode = 'SL020';
  end if;
  if not sluice.takes_mock_signatures(follow_from.genesis_id) and exists (select from sluice.wallets w where w.signer = 'hmac') then
    raise exception 'genesis_id: is that of TRON''s main network or Nile, and a wallet of this database signs as a mock'
      using errcode = 'SL005', hint = 'Start anew in a database without hmac wallets.';
  end if;
  insert into sluice.chain (genesis_id, first_number) values (follow_from.genesis_id, v_number);
  insert into sluice.blocks (number, id, parent_id, timestamp_ms, root, transactions)
  values (
    v_number, decode(v_block ->> 'id', 'hex'), decode(v_block ->> 'parent_id', 'hex'), (v_block ->> 'timestamp_ms')::bigint,
    decode(v_block ->> 'root', 'hex'), jsonb_array_length(v_block -> 'transactions'));
  insert into sluice.changes (what, after)
  values ('chain', jsonb_build_object('genesis_id', encode(follow_from.genesis_id, 'hex'), 'number', v_number, 'id', v_block -> 'id'));
  return v_number;
end
$$;
comment on function sluice.follow_from is 'Names the chain and the first followed block, once. The block is a protobuf Block; the runner''s start-block prints the call.';

-- Checks the two arguments that say what a pause is about, and brings the wallet into its one form.
create function sluice.pause_scope(wallet text, asset text) returns text
stable language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_wallet text;
begin
  if pause_scope.wallet is not null then
    v_wallet := sluice.address_argument(pause_scope.wallet, 'wallet');
    if not exists (select from sluice.wallets w where w.address = v_wallet) then
      raise exception 'wallet: % is no wallet of ours', v_wallet using errcode = 'SL005';
    end if;
  end if;
  if pause_scope.asset is not null and not exists (select from sluice.assets a where a.asset = pause_scope.asset) then
    raise exception 'asset: "%" is not set up', left(pause_scope.asset, 40) using errcode = 'SL004';
  end if;
  return v_wallet;
end
$$;

create function sluice.pause(reason text, wallet text default null, asset text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_wallet text := sluice.pause_scope(pause.wallet, pause.asset);
begin
  perform sluice.require_reason(pause.reason);
  insert into sluice.pauses (wallet, asset, reason) values (v_wallet, pause.asset, pause.reason)
  on conflict do nothing;
end
$$;
comment on function sluice.pause is 'Stops building, signing and first sends: for all, a wallet, an asset, or both. Following, settling and re-sending go on.';

create function sluice.resume(reason text, wallet text default null, asset text default null) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_wallet text := sluice.pause_scope(resume.wallet, resume.asset);
begin
  perform sluice.require_reason(resume.reason);
  update sluice.pauses p set
    resumed_at = sluice.now(), resumed_by = session_user, resume_reason = resume.reason,
    resumed_tip = (select max(b.number) from sluice.blocks b)
   where p.resumed_at is null and p.wallet is not distinct from v_wallet and p.asset is not distinct from resume.asset;
  if not found then
    raise exception 'wallet, asset: no pause of just these is in force' using errcode = 'SL005', hint = 'select * from sluice.pauses where resumed_at is null shows them.';
  end if;
end
$$;
comment on function sluice.resume is 'Ends the pause with the same wallet and asset.';

-- Whether a pause holds what would be paid from this wallet in this asset. Without a SET clause, so that it is inlined.
create function sluice.is_paused(wallet text, asset text) returns boolean
stable language sql
as $$
  select exists (
    select from sluice.pauses p
     where p.resumed_at is null
       and (p.wallet is null or p.wallet = is_paused.wallet)
       and (p.asset is null or p.asset = is_paused.asset))
$$;
