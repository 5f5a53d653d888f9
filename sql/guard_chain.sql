-- The guard of what is followed: each block follows the one before it, payments are in them, and nothing of it is ever changed.

create function sluice.blocks_before_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  parent record;
begin
  if new.followed_at is not null then
    return new;
  end if;
  new.followed_at := sluice.now();
  select b.number, b.id, b.timestamp_ms into parent from sluice.blocks b order by b.number desc limit 1;
  if not found then
    return new;
  end if;
  if new.number <> parent.number + 1 then
    raise exception 'block %: the next to follow is %', new.number, parent.number + 1 using errcode = 'SL021';
  end if;
  if new.parent_id <> parent.id then
    raise exception 'block %: its parent is %, and block % is %', new.number, encode(new.parent_id, 'hex'), parent.number,
      encode(parent.id, 'hex') using errcode = 'SL021';
  end if;
  if new.timestamp_ms <= parent.timestamp_ms then
    raise exception 'block %: its time does not rise', new.number using errcode = 'SL021';
  end if;
  return new;
end
$$;

create function sluice.payments_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  culprit record;
begin
  select f.txid into culprit
    from fresh f
    left join sluice.envelopes v on v.txid = f.txid
    left join sluice.blocks b on b.number = f.block_number
   where sluice.is_fresh(tg_table_name, f.txid)
     and (v.txid is null or b.number is null or f.operation_id is distinct from v.operation_id or f.wallet <> v.wallet
          or f.block_number <= v.ref_block_number);
  if found then
    raise exception 'payment %: no envelope of ours, or no followed block after its reference', encode(culprit.txid, 'hex')
      using errcode = 'SL012';
  end if;
  perform sluice.forget_fresh(tg_table_name, (select array_agg(f.txid) from fresh f));
  return null;
end
$$;

create trigger b_follow before insert on sluice.blocks
  for each row execute function sluice.blocks_before_insert();
create trigger never_changed before update or delete or truncate on sluice.blocks
  for each statement execute function sluice.refuse('followed blocks are irreversible');
create trigger b_mark_fresh before insert on sluice.payments
  for each row execute function sluice.mark_fresh('seen_at');
create trigger c_check_payment after insert on sluice.payments
  referencing new table as fresh
  for each statement execute function sluice.payments_after_insert();
create trigger never_changed before update or delete or truncate on sluice.payments
  for each statement execute function sluice.refuse('what a solid block shows stays so');

create trigger never_changed before update or delete or truncate on sluice.wallets
  for each statement execute function sluice.refuse('wallets are only ever added');
create trigger never_changed before update or delete or truncate on sluice.chain
  for each statement execute function sluice.refuse('the chain is named once');
create trigger never_changed before update or delete or truncate on sluice.changes
  for each statement execute function sluice.refuse('the log is append-only');
create trigger never_removed before delete or truncate on sluice.pauses
  for each statement execute function sluice.refuse('the log is append-only');
