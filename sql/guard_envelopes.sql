-- The guard of envelopes: what is filed pays what its withdrawal says, a signature is the wallet's, and a fate is what the
-- followed blocks show. Each is written once.

create function sluice.envelopes_after_insert() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  culprit record;
begin
  select f.operation_id,
         case
           when w.operation_id is null then 'there is no such withdrawal'
           when w.rail = 'internal' then 'the withdrawal stays on the ledger'
           when w.state <> 'signing' then 'the withdrawal is ' || w.state || ', and envelopes are built in signing'
           when w.wallet is distinct from f.wallet then 'the withdrawal is paid from another wallet'
           when f.attempt <> w.attempt then 'it is not the withdrawal''s attempt ' || w.attempt
           when f.fate is not null or f.signature is not null then 'an envelope begins unsigned, and without a fate'
           when b.number is null then 'its reference is no followed block'
           when sluice.slot_of(b.timestamp_ms) <> f.slot or prior.timestamp_ms >= sluice.slot_begins_ms(f.slot)
             then 'its reference is not the first followed block of its slot'
           when f.slot <= (select max(v.slot) from sluice.envelopes v where v.operation_id = f.operation_id and v.attempt < f.attempt)
             then 'its slot is not later than that of the envelope before'
           when exists (select from sluice.envelopes v
                         where v.operation_id = f.operation_id and v.txid <> f.txid
                           and not sluice.is_spent(v.fate, v.receipt))
             then 'another envelope of the withdrawal can still pay it'
           when a.version <> w.asset_version then 'the asset has changed since intake'
           when f.permission_id <> l.permission_id then 'its permission is not the wallet''s'
           when f.expiration_ms <> b.timestamp_ms + f.time_to_live_ms then 'its expiration is not its reference''s time plus its time to live'
           when f.raw_data is distinct from sluice.raw_data(
                  f.wallet, a.contract, w.to_address, w.amount_units, b.number, b.id, f.expiration_ms, b.timestamp_ms,
                  f.fee_limit_sun, w.operation_id, f.permission_id)
             then 'its bytes do not pay what the withdrawal says'
         end as fault
    into culprit
    from fresh f
    left join sluice.withdrawals w on w.operation_id = f.operation_id
    left join sluice.assets a on a.asset = w.asset
    left join sluice.wallets l on l.address = f.wallet
    left join sluice.blocks b on b.number = f.ref_block_number
    left join sluice.blocks prior on prior.number = f.ref_block_number - 1
   where sluice.is_fresh(tg_table_name, f.txid)
   order by 2 nulls last;
  if culprit.fault is not null then
    raise exception 'envelope of withdrawal %: %', culprit.operation_id, culprit.fault
      using errcode = 'SL014', hint = 'sluice.claim_batch builds envelopes.';
  end if;
  perform sluice.forget_fresh(tg_table_name, (select array_agg(f.txid) from fresh f));
  return null;
end
$$;

create function sluice.envelopes_after_update() returns trigger
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  culprit record;
begin
  -- One pass over the statement's rows: the bytes and what they were built from never change, signature and fate are written
  -- once, and each with its proof.
  select t.txid, t.fault, t.code into culprit
    from (
      select o.txid, f.code, f.fault
        from before_update o
        left join after_update n on n.txid = o.txid
        left join sluice.wallets l on l.address = n.wallet
       cross join lateral (
         select 'SL011' as code, 'what it is never changes' as fault
          where (n.operation_id, n.attempt, n.wallet, n.slot, n.ref_block_number, n.time_to_live_ms, n.fee_limit_sun,
                 n.permission_id, n.expiration_ms, n.raw_data, n.built_at)
                is distinct from
                (o.operation_id, o.attempt, o.wallet, o.slot, o.ref_block_number, o.time_to_live_ms, o.fee_limit_sun,
                 o.permission_id, o.expiration_ms, o.raw_data, o.built_at)
         union all
         select 'SL011', 'its signature is written once'
          where o.signature is not null and n.signature is distinct from o.signature
         union all
         select 'SL011', 'its fate is written once'
          where o.fate is not null
            and (n.fate, n.receipt, n.block_number, n.first_block, n.last_block)
                is distinct from (o.fate, o.receipt, o.block_number, o.first_block, o.last_block)
         union all
         select 'SL015', 'not the wallet''s signature: ' || sluice.signature_fault(l.signer, l.signer_address, n.txid, n.signature)
          where o.signature is null and n.signature is not null
            and sluice.signature_fault(l.signer, l.signer_address, n.txid, n.signature) is not null
         union all
         select 'SL012', 'no followed block holds it as said'
          where o.fate is null and n.fate = 'included'
            and (select count(*)
                   from sluice.payments p
                   join sluice.blocks b on b.number = p.block_number
                  where p.txid = n.txid and p.block_number = n.block_number and p.receipt = n.receipt) = 0
         union all
         select 'SL012', 'the followed blocks do not prove it dead'
          where o.fate is null and n.fate = 'dead'
            and (select count(*)
                   from sluice.coverage_of(n.ref_block_number, n.expiration_ms) c
                  where n.first_block = n.ref_block_number and n.last_block = c.closing
                    and (select count(*) from sluice.payments p where p.txid = n.txid) = 0
                    and sluice.envelope_fate(
                          n.expiration_ms, n.ref_block_number, c.first_followed, c.last_followed, c.closing, c.closing_ms,
                          c.margin, null, null) = 'dead') = 0
       ) f
    ) t;
  if found then
    raise exception 'envelope %: %', encode(culprit.txid, 'hex'), culprit.fault using errcode = culprit.code;
  end if;
  return null;
end
$$;

-- The followed blocks as seen from an envelope: where they begin, the newest that enough observers filed, and the first
-- stamped at or past its expiration. One observer is any: what is on file counts. Several are logins that each filed every
-- block after the reference.
create function sluice.coverage_of(reference bigint, expiration_ms bigint)
returns table (first_followed bigint, last_followed bigint, closing bigint, closing_ms bigint, margin bigint)
stable language sql
as $$
  select c.first_number,
         case
           when s.observers = 1 then (select max(t.number) from sluice.blocks t)
           else (select o.last_number
                   from sluice.observers o
                  where o.first_number <= coverage_of.reference + 1
                  order by o.last_number desc
                 offset s.observers - 1
                  limit 1)
         end,
         b.number, b.timestamp_ms, s.margin_blocks::bigint
    from sluice.chain c
   cross join sluice.settings s
    left join lateral (
      select number, timestamp_ms
        from sluice.blocks
       where timestamp_ms >= coverage_of.expiration_ms
       order by timestamp_ms
       limit 1
    ) b on true
$$;

create trigger b_mark_fresh before insert on sluice.envelopes
  for each row execute function sluice.mark_fresh('built_at');
create trigger c_check_bytes after insert on sluice.envelopes
  referencing new table as fresh
  for each statement execute function sluice.envelopes_after_insert();
create trigger c_check_fate after update on sluice.envelopes
  referencing old table as before_update new table as after_update
  for each statement execute function sluice.envelopes_after_update();
create trigger never_removed before delete or truncate on sluice.envelopes
  for each statement execute function sluice.refuse('an envelope may be paid as long as the chain lives');
