-- Settings and assets: the rows that are there from the start, how a dump's rows fold into them, and the log of their changes.

-- A restored row folds into the one that the install script wrote: else its whole COPY would be lost to a duplicate key.
create function sluice.settings_before_insert() returns trigger
language plpgsql
as $$
begin
  update sluice.settings set
    time_to_live = new.time_to_live, freshness = new.freshness, margin_blocks = new.margin_blocks, lease = new.lease,
    resend = new.resend, attempts = new.attempts, observers = new.observers, custody_function = new.custody_function, changed_by = new.changed_by,
    change_reason = new.change_reason;
  return case when found then null else new end;
end
$$;

create function sluice.assets_before_insert() returns trigger
language plpgsql
as $$
begin
  update sluice.assets set
    contract = new.contract, decimals = new.decimals, minimum_units = new.minimum_units,
    maximum_units = new.maximum_units, fee_limit_sun = new.fee_limit_sun, depth = new.depth,
    reverts_on_failure = new.reverts_on_failure, version = new.version, changed_by = new.changed_by
   where asset = new.asset;
  return case when found then null else new end;
end
$$;

-- Every change is logged, by whatever way it comes; folding a dump's row is none.
create function sluice.log_change() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
begin
  if pg_trigger_depth() = 1 then
    insert into sluice.changes (what, before, after, reason)
    values (tg_table_name, to_jsonb(old), to_jsonb(new), to_jsonb(new) ->> 'change_reason');
  end if;
  return null;
end
$$;

-- A new version whenever base units or the token come to mean something else, whoever changes them.
create function sluice.assets_before_update() returns trigger
language plpgsql
as $$
begin
  if pg_catalog.pg_trigger_depth() = 1 then
    new.version := old.version + (case when (new.contract, new.decimals) is distinct from (old.contract, old.decimals) then 1 else 0 end);
  end if;
  return new;
end
$$;

create trigger a_fold before insert on sluice.settings for each row execute function sluice.settings_before_insert();
create trigger c_log after update on sluice.settings for each row execute function sluice.log_change();
create trigger never_removed before delete or truncate on sluice.settings
  for each statement execute function sluice.refuse('settings have one row');
create trigger a_fold before insert on sluice.assets for each row execute function sluice.assets_before_insert();
create trigger b_version before update on sluice.assets for each row execute function sluice.assets_before_update();
create trigger c_log after update on sluice.assets for each row execute function sluice.log_change();
create trigger never_removed before delete or truncate on sluice.assets
  for each statement execute function sluice.refuse('withdrawals name it');

-- The rule that the install script wrote gives way to a restored one.
create function sluice.approval_rules_before_insert() returns trigger
language plpgsql
as $$
begin
  update sluice.approval_rules set name = new.name, approvals = new.approvals, set_at = new.set_at, set_by = new.set_by
   where asset = new.asset and at_least_units = new.at_least_units;
  return case when found then null else new end;
end
$$;
create trigger a_fold before insert on sluice.approval_rules for each row execute function sluice.approval_rules_before_insert();

insert into sluice.settings default values;
insert into sluice.assets (asset, contract, decimals, minimum_units, maximum_units, fee_limit_sun, depth, reverts_on_failure)
values ('USDT-TRC20', 'TR7NHqjeKQxGTCi8q8ZY4pL8otSzgjLj6t', 6, 1, 1000000000000, 100000000, 0, true);
insert into sluice.approval_rules (asset, name, at_least_units, approvals) values ('USDT-TRC20', 'default', 0, 0);
