-- verify: the invariants, each a function that looks at the tables alone and returns what breaks it. None trusts the guard that
-- keeps them: what a superuser, a broken disk or an error of ours has put there shows here.
--
-- All run in the snapshot of the one call, whatever goes on meanwhile. `since` leaves out withdrawals whose last log entry is
-- older. The functions have no SET clause, so that they are inlined: sluice.verify pins the search path.

create function sluice.rows_say_what_was_asked(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select w.operation_id::text, f.fault
    from sluice.withdrawals w
    left join sluice.events e on e.operation_id = w.operation_id and e.seq = 1
    left join sluice.assets a on a.asset = w.asset
   cross join lateral (
     select 'it is not what its first entry says'
      where (w.to_address, w.destination, w.amount_units::text, w.asset, w.account, w.requested_by, w.submitted_by, encode(w.request_hash, 'hex'))
            is distinct from
            (e.detail ->> 'to_address', e.detail ->> 'destination', e.detail ->> 'amount_units', e.detail ->> 'asset',
             e.detail ->> 'account', e.detail ->> 'requested_by', e.detail ->> 'submitted_by', e.detail ->> 'request_hash')
     union all
     select 'its request hash is of something else'
      where w.request_hash is distinct from sluice.request_hash(w.to_address, w.amount_units, w.asset, w.account)
     union all
     select 'its destination is not its address'
      where case when sluice.address_is_valid(w.destination)
                 then sluice.address_text(sluice.address_bytes(w.destination)) <> w.to_address else true end
     union all
     select 'its asset is not on file'
      where a.asset is null
     union all
     select 'its amount is not its base units'
      where a.version = w.asset_version and sluice.format_amount(w.amount_units, a.decimals) <> w.amount::text
   ) f (fault)
   where w.changed_at >= rows_say_what_was_asked.since
$$;

create function sluice.logs_are_unbroken(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select e.operation_id::text, 'entry ' || e.seq || ': ' || f.fault
    from (
      select v.*, lag(v.hash) over log as previous, lag(v.to_state) over log as left_in, row_number() over log as place
        from sluice.events v
        join sluice.withdrawals w on w.operation_id = v.operation_id and w.changed_at >= logs_are_unbroken.since
      window log as (partition by v.operation_id order by v.seq)
    ) e
   cross join lateral (
     select 'is entry ' || e.place || ' of those on file'
      where e.seq <> e.place
     union all
     select 'its hash is not that of what it says after the entry before'
      where e.hash is distinct from sluice.entry_hash(
              e.previous, e.operation_id, e.seq, e.from_state::text, e.to_state::text, e.at, e.worker_id, e.detail::text)
     union all
     select 'leaves ' || coalesce(e.from_state::text, 'nothing') || ', and the one before ended in ' || coalesce(e.left_in::text, 'nothing')
      where e.from_state is distinct from e.left_in
     union all
     select coalesce(e.from_state::text, 'nothing') || ' -> ' || e.to_state || ' is no step of the chart'
      where case
              when e.from_state is null then e.to_state <> 'requested'
              when e.from_state = e.to_state then sluice.is_terminal(e.to_state::text)
              else not sluice.chart_has(e.from_state::text, e.to_state::text)
            end
   ) f (fault)
  union all
  select w.operation_id::text, 'the log ends with entry ' || coalesce(l.seq::text, 'none') || ', the row with ' || w.seq || ', ' || w.state
    from sluice.withdrawals w
    left join lateral (
      select * from sluice.events v where v.operation_id = w.operation_id order by v.seq desc limit 1
    ) l on true
   where w.changed_at >= logs_are_unbroken.since
     and (w.seq, w.hash, w.state, w.changed_at) is distinct from (l.seq, l.hash, l.to_state, l.at)
$$;

create function sluice.ends_have_their_cause(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select w.operation_id::text, f.fault
    from sluice.withdrawals w
    left join sluice.events e on e.operation_id = w.operation_id and e.seq = w.seq
   cross join lateral (
     select count(*) as built, count(*) filter (where not sluice.is_spent(v.fate, v.receipt)) as payable
       from sluice.envelopes v
      where v.operation_id = w.operation_id
   ) n
   cross join lateral (
     select 'confirmed, and no followed block that it names holds an envelope of it with SUCCESS'
      where w.state = 'confirmed' and w.rail is distinct from 'internal'
        -- Scalar, one in the other: each stays a look into an index, where a join would read a whole block's payments.
        and (select count(*)
               from sluice.envelopes v
              where v.operation_id = w.operation_id and v.fate = 'included' and v.receipt = 'SUCCESS' and v.block_number = w.block_number
                and encode(v.txid, 'hex') = e.detail ->> 'txid'
                and (select (p.block_number, p.receipt) = (v.block_number, v.receipt) from sluice.payments p where p.txid = v.txid)
                and (select encode(b.id, 'hex') = e.detail ->> 'block_id' from sluice.blocks b where b.number = v.block_number)) = 0
     union all
     select 'confirmed, and its posting is not on file as it says'
      where w.state = 'confirmed' and w.rail = 'internal'
        and (select count(*)
               from sluice.postings p
              where p.posting_id = w.posting_id and p.posting_id::text = e.detail ->> 'posting_id' and p.kind = 'transfer'
                and (p.operation_id, p.debit, p.credit, p.asset, p.units)
                    is not distinct from (w.operation_id, coalesce(w.account, 'outside'), w.credit_account, w.asset, w.amount_units)) = 0
     union all
     select 'confirmed before its depth'
      where w.state = 'confirmed' and w.rail is distinct from 'internal'
        and ((e.detail ->> 'tip')::bigint >= w.block_number + (e.detail ->> 'depth')::bigint) is not true
     union all
     select 'failed, and an envelope of it can still pay, or has paid'
      where w.state = 'failed' and n.payable > 0
     union all
     select 'failed without ever having been built'
      where w.state = 'failed' and n.built = 0
     union all
     select 'rejected, and it was built'
      where w.state = 'rejected' and n.built > 0
     union all
     select w.state || ', and its posting is booked'
      where w.state <> 'confirmed'
        and (select count(*) from sluice.postings p where p.posting_id = sluice.withdrawal_posting_id(w.operation_id)) > 0
     union all
     select w.state || ' without a reason'
      where w.state in ('failed', 'rejected') and coalesce(w.failure_reason, '') = ''
     union all
     select w.state || ', and still due'
      where w.due_at is not null or w.leased_by is not null
   ) f (fault)
   where w.state in ('confirmed', 'failed', 'rejected') and w.changed_at >= ends_have_their_cause.since
$$;

create function sluice.nothing_is_lost(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  -- Whatever is not over is looked at again by itself, or waits for a person: to approve it, or with a receipt that decides
  -- nothing.
  select w.operation_id::text, w.state || ', not due, and no receipt on file explains it'
    from sluice.withdrawals w
   where w.state not in ('confirmed', 'failed', 'rejected') and w.due_at is null and w.changed_at >= nothing_is_lost.since
     and not (w.state = 'validated' and sluice.missing_approvals(w.operation_id) is not null)
     and not exists (
       select from sluice.envelopes v
        where v.operation_id = w.operation_id and v.fate = 'included' and v.receipt <> 'SUCCESS' and not sluice.receipt_failed(v.receipt))
$$;

create function sluice.nothing_is_removed(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select t.operation_id::text, 'the withdrawal is not on file, and ' || string_agg(distinct t.trace, ', ' order by t.trace) || ' of it'
    from (
      select e.operation_id, 'entries' as trace from sluice.events e where e.at >= nothing_is_removed.since
      union all
      select e.operation_id, 'envelopes' from sluice.envelopes e where e.built_at >= nothing_is_removed.since
      union all
      select p.operation_id, 'payments' from sluice.payments p where p.operation_id is not null and p.seen_at >= nothing_is_removed.since
      union all
      select p.operation_id, 'postings' from sluice.postings p where p.operation_id is not null and p.booked_at >= nothing_is_removed.since
      union all
      select h.operation_id, 'holds' from sluice.holds h where h.placed_at >= nothing_is_removed.since
      union all
      select p.operation_id, 'approvals' from sluice.approvals p where p.approved_at >= nothing_is_removed.since
    ) t
   where not exists (select from sluice.withdrawals w where w.operation_id = t.operation_id)
   group by t.operation_id
  union all
  select w.operation_id::text, 'of its ' || w.attempt || ' envelopes ' || n.built || ' are on file, the last of them attempt ' || coalesce(n.last::text, 'none')
    from sluice.withdrawals w
   cross join lateral (
     select count(*) as built, max(v.attempt) as last from sluice.envelopes v where v.operation_id = w.operation_id
   ) n
   where w.changed_at >= nothing_is_removed.since and (n.built <> w.attempt or coalesce(n.last, 0) <> w.attempt)
$$;

create function sluice.one_live_envelope(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select v.operation_id::text, count(*) || ' envelopes of it can pay, or have paid'
    from sluice.envelopes v
    join sluice.withdrawals w on w.operation_id = v.operation_id and w.changed_at >= one_live_envelope.since
   where not sluice.is_spent(v.fate, v.receipt)
   group by v.operation_id
  having count(*) > 1
  union all
  select v.operation_id::text, 'attempt ' || v.attempt || ' can pay, or has paid, and attempt ' || w.attempt || ' was built'
    from sluice.envelopes v
    join sluice.withdrawals w on w.operation_id = v.operation_id and w.changed_at >= one_live_envelope.since
   where v.attempt < w.attempt and not sluice.is_spent(v.fate, v.receipt)
$$;

create function sluice.one_withdrawal_a_txid(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select encode(t.txid, 'hex'), 'belongs to ' || string_agg(distinct t.operation_id::text, ', ')
    from (
      select v.txid, v.operation_id from sluice.envelopes v
      union all
      select p.txid, p.operation_id from sluice.payments p where p.operation_id is not null
      union all
      select decode(e.detail ->> 'txid', 'hex'), e.operation_id
        from sluice.events e
       where e.detail ->> 'txid' ~ '^[0-9a-f]{64}$' and e.at >= one_withdrawal_a_txid.since
    ) t
   group by t.txid
  having count(distinct t.operation_id) > 1
  union all
  select encode(v.txid, 'hex'), 'is not the hash of its bytes'
    from sluice.envelopes v
   where v.built_at >= one_withdrawal_a_txid.since and v.txid is distinct from sluice.txid(v.raw_data)
  union all
  select e.operation_id::text, 'entry ' || e.seq || ' names a transaction that is no envelope of it: ' || (e.detail ->> 'txid')
    from sluice.events e
   where e.detail ? 'txid' and e.at >= one_withdrawal_a_txid.since
     and not exists (
       select from sluice.envelopes v where v.operation_id = e.operation_id and encode(v.txid, 'hex') = e.detail ->> 'txid')
$$;

create function sluice.envelopes_pay_the_row(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select encode(v.txid, 'hex'), f.fault
    from sluice.envelopes v
    join sluice.withdrawals w on w.operation_id = v.operation_id and w.changed_at >= envelopes_pay_the_row.since
    left join sluice.assets a on a.asset = w.asset
    left join sluice.wallets l on l.address = v.wallet
    left join sluice.blocks b on b.number = v.ref_block_number
   cross join lateral (
     select 'it pays from another wallet than the withdrawal''s'
      where v.wallet is distinct from w.wallet or l.address is null
     union all
     select 'its reference is no followed block'
      where b.number is null
     union all
     select 'its expiration is not its reference''s time plus its time to live'
      where v.expiration_ms <> b.timestamp_ms + v.time_to_live_ms
     union all
     select 'its bytes do not pay what the withdrawal says'
      where b.number is not null
        and v.raw_data is distinct from sluice.raw_data(
              v.wallet,
              -- An asset whose contract has changed since: what the bytes themselves say it was.
              case when a.version = w.asset_version then a.contract else sluice.decode_raw_data(v.raw_data) ->> 'contract' end,
              w.to_address, w.amount_units, b.number, b.id, v.expiration_ms, b.timestamp_ms, v.fee_limit_sun, w.operation_id, v.permission_id)
     union all
     select 'not the wallet''s signature: ' || sluice.signature_fault(l.signer, l.signer_address, v.txid, v.signature)
      where v.signature is not null and sluice.signature_fault(l.signer, l.signer_address, v.txid, v.signature) is not null
     union all
     select 'the withdrawal is ' || w.state || ', and its signature is not on file'
      where v.attempt = w.attempt and v.signature is null and v.fate is null and w.state in ('signed', 'broadcasting', 'broadcast')
   ) f (fault)
$$;

-- The followed blocks that do not follow from the one before: none, if all is well.
create function sluice.broken_links(from_number bigint) returns table (number bigint, fault text)
stable language sql
as $$
  select b.number,
         case
           when b.before is null then 'following began with block ' || c.first_number
           when b.before <> b.number - 1 then 'the one before it on file is block ' || b.before
           when b.parent_id <> b.parent then 'its parent is another block than the one before it'
           else 'its time does not rise'
         end
    from (
      select t.number, t.parent_id, t.timestamp_ms, lag(t.number) over way as before, lag(t.id) over way as parent,
             lag(t.timestamp_ms) over way as time_before
        from sluice.blocks t
       where t.number >= broken_links.from_number
      window way as (order by t.number)
    ) b
    left join sluice.chain c on true
   where (b.before is null and b.number is distinct from greatest(c.first_number, broken_links.from_number))
      or b.before <> b.number - 1 or b.parent_id <> b.parent or b.timestamp_ms <= b.time_before
$$;

-- The oldest block that the withdrawals in question refer to.
create function sluice.verified_from(since timestamptz) returns bigint
stable language sql
as $$
  select coalesce(
    case
      when verified_from.since = '-infinity' then 0
      else (select min(v.ref_block_number)
              from sluice.envelopes v
              join sluice.withdrawals w on w.operation_id = v.operation_id and w.changed_at >= verified_from.since)
    end,
    (select max(b.number) from sluice.blocks b), 0)
$$;

create function sluice.blocks_are_chained(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select 'block ' || k.number, k.fault from sluice.broken_links(sluice.verified_from(blocks_are_chained.since)) k
$$;

create function sluice.deaths_are_proven(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  with links as materialized (
    select k.number from sluice.broken_links(sluice.verified_from(deaths_are_proven.since)) k
  )
  -- Every death, from the blocks.
  select encode(v.txid, 'hex'), f.fault
    from sluice.envelopes v
    join sluice.withdrawals w on w.operation_id = v.operation_id and w.changed_at >= deaths_are_proven.since
    left join sluice.blocks b on b.number = v.first_block
    left join sluice.blocks l on l.number = v.last_block
    left join sluice.blocks p on p.number = v.last_block - 1
   cross join lateral (
     select 'dead, and its blocks are not on file from its reference to the first past its expiration'
      where b.number is null or l.number is null or p.number is null or v.first_block <> v.ref_block_number
         or l.timestamp_ms < v.expiration_ms or p.timestamp_ms >= v.expiration_ms
     union all
     select 'dead, and its blocks are not chained'
      where exists (select from links k where k.number > v.first_block and k.number <= v.last_block)
     union all
     select 'dead, and a followed block holds it'
      where exists (select from sluice.payments t where t.txid = v.txid)
   ) f (fault)
   where v.fate = 'dead'
  union all
  -- Every inclusion, from the payments.
  select encode(v.txid, 'hex'), 'included, and no followed block holds it as it says'
    from sluice.envelopes v
    join sluice.withdrawals w on w.operation_id = v.operation_id and w.changed_at >= deaths_are_proven.since
   where v.fate = 'included'
     and not exists (
       select from sluice.payments p
         join sluice.blocks b on b.number = p.block_number
        where p.txid = v.txid and p.block_number = v.block_number and p.receipt = v.receipt and p.block_number > v.ref_block_number)
  union all
  -- Every step that waits for an end names that end, as the envelope has it on file: rebuilds and failures. (Building the next
  -- envelope is a step too; what it follows is the entry before.)
  select e.operation_id::text, 'entry ' || e.seq || ': ' || e.from_state || ' -> ' || e.to_state || ' has no evidence that holds'
    from sluice.events e
    join sluice.withdrawals w on w.operation_id = e.operation_id and w.changed_at >= deaths_are_proven.since
    left join sluice.envelopes v on v.operation_id = e.operation_id and encode(v.txid, 'hex') = e.detail ->> 'txid'
    left join sluice.blocks b on b.number = v.block_number
    left join sluice.blocks f on f.number = v.first_block
    left join sluice.blocks l on l.number = v.last_block
    left join sluice.envelopes o on o.operation_id = v.operation_id and o.attempt = v.attempt - 1
   where sluice.stars_of(e.from_state::text, e.to_state::text) = '*'
     and case
           when e.detail ? 'fate' then
             sluice.is_spent(v.fate, v.receipt)
             and (v.fate, v.receipt, v.block_number, encode(b.id, 'hex'), v.first_block, encode(f.id, 'hex'), v.last_block, encode(l.id, 'hex'))
                 is not distinct from
                 (e.detail ->> 'fate', e.detail ->> 'receipt', (e.detail ->> 'block_number')::bigint, e.detail ->> 'block_id',
                  (e.detail ->> 'first_block')::bigint, e.detail ->> 'first_block_id', (e.detail ->> 'last_block')::bigint,
                  e.detail ->> 'last_block_id')
             and (v.fate <> 'dead' or (e.detail ->> 'tip')::bigint >= v.last_block + (e.detail ->> 'margin_blocks')::bigint)
           else e.to_state = 'signing' and sluice.is_spent(o.fate, o.receipt)
         end is not true
$$;

create function sluice.payments_are_the_confirmed(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select w.operation_id::text, 'confirmed, and it has ' || n.successes || ' successful payments'
    from sluice.withdrawals w
   cross join lateral (
     select count(*) as successes from sluice.payments p where p.operation_id = w.operation_id and p.receipt = 'SUCCESS'
   ) n
   where w.state = 'confirmed' and w.rail is distinct from 'internal' and n.successes <> 1 and w.changed_at >= payments_are_the_confirmed.since
  union all
  select encode(p.txid, 'hex'), f.fault
    from sluice.payments p
    join sluice.withdrawals w on w.operation_id = p.operation_id
    left join sluice.envelopes v on v.txid = p.txid
    left join sluice.unsettled u on u.operation_id = p.operation_id
   cross join lateral (
     select 'withdrawal ' || w.operation_id || ' was paid by it, and is ' || w.state
      where p.receipt = 'SUCCESS' and w.state <> 'confirmed' and u.operation_id is null
        and (w.state = 'broadcast' and w.deep_at > (select max(b.number) from sluice.blocks b)) is not true
     union all
     select 'it is not the payment that its envelope and withdrawal ' || w.operation_id || ' ask for'
      where (v.operation_id, v.wallet, w.to_address, w.amount_units) is distinct from (p.operation_id, p.wallet, p.to_address, p.amount_units)
     union all
     select 'its envelope does not know of it'
      where u.operation_id is null and (v.fate, v.receipt, v.block_number) is distinct from ('included', p.receipt, p.block_number)
   ) f (fault)
   where w.changed_at >= payments_are_the_confirmed.since or p.seen_at >= payments_are_the_confirmed.since
$$;

create function sluice.sums_agree(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select coalesce(c.asset, p.asset), 'confirmed ' || coalesce(c.units, 0) || ' base units, and ' || coalesce(p.units, 0) || ' were paid'
    from (
      select w.asset, sum(w.amount_units) as units
        from sluice.withdrawals w
       where w.state = 'confirmed' and w.rail is distinct from 'internal' and w.changed_at >= sums_agree.since
       group by w.asset
    ) c
    full join (
      select w.asset, sum(p.amount_units) as units
        from sluice.payments p
        join sluice.withdrawals w on w.operation_id = p.operation_id and w.state = 'confirmed' and w.changed_at >= sums_agree.since
       where p.receipt = 'SUCCESS'
       group by w.asset
    ) p on p.asset = c.asset
   where c.units is distinct from p.units
  union all
  -- What the overview adds up was counted step by step; here it is counted from the rows.
  select coalesce(t.asset, w.asset) || ', ' || coalesce(t.state, w.state),
         'the overview counts ' || coalesce(t.withdrawals, 0) || ' with ' || coalesce(t.units, 0) || ' base units, and '
         || coalesce(w.withdrawals, 0) || ' with ' || coalesce(w.units, 0) || ' are on file'
    from (
      select t.asset, t.state, sum(t.withdrawals) as withdrawals, sum(t.units) as units from sluice.tallies t group by t.asset, t.state
    ) t
    full join (
      select w.asset, w.state, count(*) as withdrawals, sum(w.amount_units) as units
        from sluice.withdrawals w
       where w.state in ('confirmed', 'failed', 'rejected')
       group by w.asset, w.state
    ) w on w.asset = t.asset and w.state = t.state
   where sums_agree.since = '-infinity' and (t.withdrawals, t.units) is distinct from (w.withdrawals, w.units)
$$;

create function sluice.rails_keep_apart(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select w.operation_id::text, f.fault
    from sluice.withdrawals w
    left join sluice.events e on e.operation_id = w.operation_id and e.detail ? 'rail'
    left join sluice.postings p on p.posting_id = sluice.withdrawal_posting_id(w.operation_id)
   cross join lateral (
     select 'internal, and an envelope or a payment of it is on file'
      where w.rail = 'internal'
        and (w.wallet is not null or w.attempt <> 0 or exists (select from sluice.envelopes v where v.operation_id = w.operation_id)
             or exists (select from sluice.payments t where t.operation_id = w.operation_id))
     union all
     select 'internal, and its posting is not the one fixed for it'
      where w.rail = 'internal' and w.posting_id is distinct from sluice.withdrawal_posting_id(w.operation_id)
     union all
     select 'not internal, and it has a posting id'
      where w.rail is distinct from 'internal' and (w.posting_id is not null or p.kind = 'transfer')
     union all
     select 'internal, and what an external one takes from its account is booked for it'
      where w.rail = 'internal' and p.kind <> 'transfer'
     union all
     select 'its route is not the one in its log'
      where e.seq is not null
        and (w.rail::text, w.reason_code, w.reason, w.credit_account, w.depth, w.destination)
            is distinct from
            (e.detail ->> 'rail', e.detail ->> 'reason_code', e.detail ->> 'reason', e.detail ->> 'account', (e.detail ->> 'depth')::int,
             e.detail ->> 'destination')
     union all
     select 'it has a route that its log does not know'
      where w.rail is not null and e.seq is null
   ) f (fault)
   where w.changed_at >= rails_keep_apart.since
$$;

create function sluice.balances_are_their_postings(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  -- What an account has is the whole of its past: since leaves nothing out.
  select coalesce(a.account, s.account) || ', ' || coalesce(a.asset, s.asset),
         'has ' || coalesce(a.posted::text, 'no balance') || ', and its postings sum up to ' || coalesce(s.units, 0)
    from sluice.accounts a
    full join (
      select t.account, p.asset, sum(t.units) as units
        from sluice.postings p
       cross join lateral (values (p.debit, -p.units), (p.credit, p.units)) t (account, units)
       where t.account <> 'outside'
       group by t.account, p.asset
    ) s on s.account = a.account and s.asset = a.asset
   where coalesce(a.posted, -1) <> coalesce(s.units, 0)
  union all
  select p.posting_id::text, 'debits and credits of it do not balance'
    from sluice.postings p
   where (p.units >= 1 and p.debit <> p.credit) is not true
  union all
  select p.posting_id::text, 'no deposit has its id'
    from sluice.postings p
   where p.kind = 'deposit' and p.posting_id is distinct from sluice.deposit_id(p.reference)
  union all
  select a.account || ', ' || a.asset, 'holds ' || h.units || ' of ' || a.posted
    from sluice.accounts a
    join (select h.account, h.asset, sum(h.units) as units from sluice.holds h where h.ended is null group by h.account, h.asset) h
      on h.account = a.account and h.asset = a.asset
   where h.units > a.posted
$$;

create function sluice.holds_are_the_withdrawals(since timestamptz) returns table (culprit text, fault text)
stable language sql
as $$
  select w.operation_id::text, f.fault
    from sluice.withdrawals w
    left join sluice.holds h on h.operation_id = w.operation_id
    left join sluice.postings p on p.posting_id = sluice.withdrawal_posting_id(w.operation_id)
   cross join lateral (
     select 'it names no account, and funds are held for it'
      where w.account is null and h.operation_id is not null
     union all
     select 'its hold is of something else'
      where h.operation_id is not null and (h.account, h.asset, h.units) is distinct from (w.account, w.asset, w.amount_units)
     union all
     select w.state || ', and no funds are held for it'
      where w.account is not null and h.operation_id is null and w.state not in ('requested', 'failed', 'rejected')
     union all
     select w.state || ', and its hold is ' || coalesce(h.ended, 'open')
      where h.operation_id is not null
        and h.ended is distinct from case w.state when 'confirmed' then 'captured' when 'failed' then 'released' when 'rejected' then 'released' end
     union all
     select 'confirmed, and its funds were not taken from its account'
      where w.state = 'confirmed' and w.account is not null
        and (p.debit, p.asset, p.units) is distinct from (w.account, w.asset, w.amount_units)
   ) f (fault)
   where w.changed_at >= holds_are_the_withdrawals.since
$$;

create function sluice.verify(since timestamptz) returns table (invariant text, holds boolean, detail jsonb)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
declare
  v_count bigint;
  v_examples jsonb;
begin
  if verify.since is null then
    raise exception 'since: is missing' using errcode = 'SL005', hint = 'sluice.verify() looks at everything.';
  end if;
  foreach invariant in array array[
    'rows_say_what_was_asked', 'logs_are_unbroken', 'ends_have_their_cause', 'nothing_is_lost', 'nothing_is_removed',
    'one_live_envelope', 'one_withdrawal_a_txid', 'envelopes_pay_the_row', 'blocks_are_chained', 'deaths_are_proven',
    'payments_are_the_confirmed', 'sums_agree', 'rails_keep_apart', 'balances_are_their_postings', 'holds_are_the_withdrawals']
  loop
    begin
      execute format(
        'select count(*), jsonb_agg(jsonb_build_object(''culprit'', f.culprit, ''fault'', f.fault)) filter (where f.place <= 10)
           from (select t.culprit, t.fault, row_number() over () as place from sluice.%I($1) t) f', invariant)
        into v_count, v_examples using verify.since;
      holds := v_count = 0;
      detail := case when holds then '{}' else jsonb_build_object('faults', v_count, 'examples', v_examples) end;
    exception when others then
      -- What cannot even be read does not hold: bytes that are no address, a number that is none. An operator's intervention and a
      -- lack of resources say nothing of the rows.
      if not sluice.is_a_rows_fault(sqlstate) then
        raise;
      end if;
      holds := false;
      detail := jsonb_build_object('error', sqlstate || ' ' || sqlerrm);
    end;
    return next;
  end loop;
end
$$;
comment on function sluice.verify(timestamptz) is
  'The invariants, from the tables alone, for withdrawals whose last log entry is at or past since. detail names up to ten culprits of each that is broken.';

create function sluice.verify() returns table (invariant text, holds boolean, detail jsonb)
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off
as $$ select * from sluice.verify('-infinity'::timestamptz) $$;
comment on function sluice.verify() is 'The invariants, from the tables alone, for everything on file. Reads all of it: minutes at tens of millions of rows.';
