-- Rails: the one decision which way a withdrawal's money goes, and the ledger's way. Chain code (claim, record, observe) and ledger code
-- (this file and ledger.sql) do not know each other; claim_all and the intake's trigger pick by rail.
--
-- The ledger's way takes the same states as the chain's, in one transaction and a fixed number of statements: validate (the route
-- is stored, the hold placed), hand over (the posting is booked, the row walked to confirmed).

alter function sluice.decide_route rows 1;

create function sluice.route(destination text, asset text) returns setof sluice.route_view rows 1
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_address bytea;
  v_account text;
  v_depth int;
begin
  perform sluice.require('destination', route.destination), sluice.require_asset(route.asset);
  v_address := sluice.address_bytes(sluice.address_argument(route.destination, 'destination'));
  select a.depth into v_depth from sluice.assets a where a.asset = route.asset;
  execute format('select %s($1, $2)', sluice.custody_call((select s.custody_function from sluice.settings s)))
    into v_account using v_address, route.asset;
  return query
  select d.rail::sluice.rail, route.destination, d.reason_code, d.reason, d.account, d.settlement, d.depth
    from sluice.decide_route(route.destination, v_account, v_depth) d;
end
$$;
comment on function sluice.route is
  'How a withdrawal to this destination would be routed now: the rail, why, the account credited (internal) and when it is settled: on the ledger at once, on the chain at a depth in followed blocks beyond solid.';

-- Why these withdrawals, not built yet, may go no further; no row for those that may. credits: the account that each would be credited
-- to, NULL on the chain. Locks the accounts, so that what it says of their funds holds until the transaction ends. Each
-- that fits takes its amount from those after it, in the order of intake.
create function sluice.refusals(ids uuid[], credits text[]) returns table (operation_id uuid, why text)
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_covered boolean[];
  v_place uuid[];
  v_uncovered uuid[] := '{}';
begin
  if exists (select from sluice.withdrawals w where w.operation_id = any (refusals.ids) and w.account is not null)
     or array_length(array_remove(refusals.credits, null), 1) > 0 then
    perform sluice.lock_accounts(array_agg(t.account), array_agg(w.asset))
       from unnest(refusals.ids, refusals.credits) g (operation_id, credit)
      cross join lateral (select x.account, x.asset from sluice.withdrawals x where x.operation_id = g.operation_id limit 1) w
      cross join lateral (values (w.account), (g.credit)) t (account);
    with sources as (
      select a.account, a.asset, a.posted - sluice.held_of(a.account, a.asset, '{}') as available,
             row_number() over (order by a.asset, a.account)::int as place
        from sluice.accounts a
       where a.closed_at is null
         and (a.account, a.asset) in (
           select w.account, w.asset from sluice.withdrawals w where w.operation_id = any (refusals.ids) and w.account is not null)
    ),
    wants as (
      select w.operation_id, coalesce(s.place, 0) as place, w.amount_units,
             row_number() over (order by w.created_at, w.operation_id) as turn
        from sluice.withdrawals w
        left join sources s on s.account = w.account and s.asset = w.asset
       where w.operation_id = any (refusals.ids) and w.account is not null
         and not exists (select from sluice.holds h where h.operation_id = w.operation_id)
    )
    select sluice.cover(
             (select coalesce(array_agg(s.available::text order by s.place), '{}') from sources s),
             coalesce(array_agg(w.place order by w.turn), '{}'), coalesce(array_agg(w.amount_units::text order by w.turn), '{}')),
           array_agg(w.operation_id order by w.turn)
      into v_covered, v_place
      from wants w;
    v_uncovered := array(select u.id from unnest(v_place, v_covered) u (id, covered) where not u.covered);
  end if;

  return query
  select f.operation_id, f.why
    from (
      select w.operation_id,
             case
               when w.asset_version <> a.version then 'the asset''s contract or decimals changed since it was asked for'
               when w.amount_units < a.minimum_units or w.amount_units > a.maximum_units then
                 'the amount is outside the asset''s limits, which changed since it was asked for'
               when w.to_address = a.contract or exists (select from sluice.wallets l where l.address = w.to_address) then
                 'the destination has become one that must not be paid: a wallet of ours, or the token''s contract'
               when w.account is not null and not exists (
                      select from sluice.accounts s where s.account = w.account and s.asset = w.asset and s.closed_at is null) then
                 format('account %s is not open for %s', w.account, w.asset)
               when g.credit = w.account then format('the destination is an address of account %s itself', w.account)
               when c.closed_at is not null then format('account %s, whose address the destination is, is closed', g.credit)
               when c.posted + w.amount_units >= 1e38 then format('account %s, whose address the destination is, cannot hold that much more', g.credit)
               when w.operation_id in (select unnest(v_uncovered)) then format('account %s has insufficient available funds', w.account)
             end as why
        from unnest(refusals.ids, refusals.credits) g (operation_id, credit)
       cross join lateral (select * from sluice.withdrawals x where x.operation_id = g.operation_id limit 1) w
        join sluice.assets a on a.asset = w.asset
        left join sluice.accounts c on c.account = g.credit and c.asset = w.asset
    ) f
   where f.why is not null;
end
$$;

-- Places the holds of these withdrawals: those that name an account, once each. Placing again is free.
create function sluice.place_holds(ids uuid[]) returns void
language sql volatile set search_path = pg_catalog, pg_temp
as $$
  insert into sluice.holds (operation_id, account, asset, units)
  select w.operation_id, w.account, w.asset, w.amount_units
    from sluice.withdrawals w
   where w.operation_id = any (place_holds.ids) and w.account is not null
   order by w.operation_id
  on conflict (operation_id) do nothing
$$;

-- What approvals these withdrawals have, and what they need by the rules of now. Without a SET clause, so that it is inlined.
create function sluice.approvals_of(ids uuid[]) returns table (operation_id uuid, rule text, needed int, given bigint)
stable language sql
as $$
  select w.operation_id, r.name, coalesce(r.approvals, 0),
         case when r.approvals > 0 then (select count(*) from sluice.approvals p where p.operation_id = w.operation_id) else 0 end
    from unnest(approvals_of.ids) g (operation_id)
   cross join lateral (select * from sluice.withdrawals x where x.operation_id = g.operation_id limit 1) w
    left join lateral (
      select q.name, q.approvals
        from sluice.approval_rules q
       where q.asset = w.asset and q.at_least_units <= w.amount_units
       order by q.at_least_units desc
       limit 1
    ) r on true
$$;

-- The same, in words: NULL where nothing is missing. The view stuck asks it for its readers.
create function sluice.missing_approvals(operation_id uuid) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
  select format('%s of %s approvals under the rule "%s"', p.given, p.needed, p.rule)
    from sluice.approvals_of(array[missing_approvals.operation_id]) p
   where p.given < p.needed
$$;

-- What a route's decision files in the log.
create function sluice.route_detail(rail text, destination text, reason_code text, reason text, account text, settlement text, depth int) returns jsonb
immutable parallel safe language sql
as $$
  select jsonb_strip_nulls(jsonb_build_object(
    'rail', rail, 'destination', destination, 'reason_code', reason_code, 'reason', reason, 'account', account,
    'settlement', settlement, 'depth', depth))
$$;

-- Validates withdrawals that custody says are for accounts of ours: the route is stored, once, and the hold placed; or they are rejected.
-- The caller holds the rows.
create function sluice.validate(ids uuid[], credits text[], by text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_refused uuid[];
  v_why text[];
begin
  -- An account that custody names is one of ours, opened with its first credit. One that was closed stays closed.
  insert into sluice.accounts (account, asset, opened_by)
  select distinct g.credit, w.asset, 'sluice'
    from unnest(validate.ids, validate.credits) g (operation_id, credit)
   cross join lateral (select x.asset from sluice.withdrawals x where x.operation_id = g.operation_id limit 1) w
   where sluice.is_account_name(g.credit)
   order by w.asset, g.credit
  on conflict (account, asset) do nothing;

  select coalesce(array_agg(r.operation_id), '{}'), coalesce(array_agg(r.why), '{}') into v_refused, v_why
    from sluice.refusals(validate.ids, validate.credits) r;
  perform sluice.place_holds(array(select u.id from unnest(validate.ids) u (id) where u.id not in (select unnest(v_refused))));

  with decided as materialized (
    select g.operation_id, r.why, x.destination, d.rail, d.reason_code, d.reason, d.account, d.settlement, d.depth,
           sluice.withdrawal_posting_id(g.operation_id) as posting_id
      from unnest(validate.ids, validate.credits) g (operation_id, credit)
      left join unnest(v_refused, v_why) r (operation_id, why) on r.operation_id = g.operation_id
     cross join lateral (select w.destination from sluice.withdrawals w where w.operation_id = g.operation_id limit 1) x
     cross join lateral sluice.decide_route(x.destination, g.credit, 0) d
  )
  update sluice.withdrawals w set
    state = case when d.why is null then 'validated' else 'rejected' end::sluice.state,
    step_seq = w.seq,
    step_path = case when d.why is null then '{validated}' else '{rejected}' end::sluice.state[],
    step_detail = jsonb_build_array(
      sluice.route_detail(d.rail, d.destination, d.reason_code, d.reason, d.account, d.settlement, d.depth)
      || case when d.why is null then jsonb_build_object('posting_id', d.posting_id) else jsonb_build_object('rejected', d.why) end),
    step_by = validate.by,
    rail = d.rail::sluice.rail, reason_code = d.reason_code, reason = d.reason, credit_account = d.account,
    posting_id = d.posting_id,
    failure_reason = d.why,
    held_by = null, leased_by = null
    from decided d
   where w.operation_id = d.operation_id and w.operation_id = any (validate.ids);
end
$$;

-- Hands validated withdrawals of the ledger's rail over to it: posts and confirms those whose approvals suffice by the rules of now, and
-- says of the others what they wait for. Posting twice is posting once. The caller holds the rows.
create function sluice.hand_over(ids uuid[], by text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_waiting uuid[];
  v_refused uuid[];
  v_why text[];
  v_paid uuid[];
  v_now timestamptz := sluice.now();
begin
  v_waiting := array(select p.operation_id from sluice.approvals_of(hand_over.ids) p where p.given < p.needed);
  if cardinality(v_waiting) > 0 then
    update sluice.withdrawals w set held_by = 'approvals', due_at = null, leased_by = null
     where w.operation_id = any (v_waiting) and (w.held_by is distinct from 'approvals' or w.due_at is not null);
  end if;

  v_paid := array(select u.id from unnest(hand_over.ids) u (id) where u.id not in (select unnest(v_waiting)));
  if cardinality(v_paid) = 0 then
    return;
  end if;
  -- What has changed since it was validated: an account closed, an asset that means something else.
  select coalesce(array_agg(r.operation_id), '{}'), coalesce(array_agg(r.why), '{}') into v_refused, v_why
    from sluice.refusals(v_paid, array(
           select w.credit_account from unnest(v_paid) with ordinality u (id, place) join sluice.withdrawals w on w.operation_id = u.id order by u.place)) r;
  v_paid := array(select u.id from unnest(v_paid) u (id) where u.id not in (select unnest(v_refused)));

  insert into sluice.postings (posting_id, kind, debit, credit, asset, units, operation_id)
  select w.posting_id, 'transfer', coalesce(w.account, 'outside'), w.credit_account, w.asset, w.amount_units, w.operation_id
    from sluice.withdrawals w
   where w.operation_id = any (v_paid)
   order by w.operation_id
  on conflict (posting_id) do nothing;

  update sluice.withdrawals w set
    state = case when r.why is null then 'confirmed' else 'rejected' end::sluice.state,
    step_seq = w.seq,
    step_path = case when r.why is null then '{signing,signed,broadcasting,broadcast,confirmed}' else '{rejected}' end::sluice.state[],
    step_detail = case when r.why is null
                       then sluice.details(5, jsonb_build_object('posting_id', w.posting_id, 'credit', w.credit_account, 'debit', coalesce(w.account, 'outside')))
                       else jsonb_build_array(jsonb_build_object('rejected', r.why)) end,
    step_by = hand_over.by,
    failure_reason = r.why,
    confirmed_at = case when r.why is null then v_now end,
    held_by = null
    from unnest(v_paid || v_refused) g (operation_id)
    left join unnest(v_refused, v_why) r (operation_id, why) on r.operation_id = g.operation_id
   where w.operation_id = g.operation_id and w.operation_id = any (hand_over.ids);
end
$$;

-- Takes withdrawals for accounts of ours all the way, as far as approvals allow: at intake, and where a claim finds them.
create function sluice.take_in(ids uuid[], credits text[], by text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  perform sluice.validate(take_in.ids, take_in.credits, take_in.by);
  perform sluice.hand_over(
            array(select w.operation_id from sluice.withdrawals w
                   where w.operation_id = any (take_in.ids) and w.state = 'validated' order by w.operation_id),
            take_in.by);
end
$$;

-- Ends the holds of withdrawals that are over, as they ended: the guard's trigger calls it, whatever ended them. What the chain paid is
-- taken from the account.
create function sluice.end_holds(ids uuid[]) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
begin
  insert into sluice.postings (posting_id, kind, debit, credit, asset, units, operation_id)
  select sluice.withdrawal_posting_id(w.operation_id), 'capture', w.account, 'outside', w.asset, w.amount_units, w.operation_id
    from sluice.withdrawals w
   where w.operation_id = any (end_holds.ids) and w.state = 'confirmed' and w.rail is distinct from 'internal' and w.account is not null
   order by w.operation_id;
  update sluice.holds h set
    ended = case when w.state = 'confirmed' then 'captured' else 'released' end, ended_at = sluice.now()
    from sluice.withdrawals w
   where h.operation_id = any (end_holds.ids) and h.ended is null
     and w.operation_id = h.operation_id and w.operation_id = any (end_holds.ids);
end
$$;

create function sluice.routed(since timestamptz default null, until timestamptz default null)
returns table (rail sluice.rail, reason_code text, account text, asset text, withdrawals bigint, units numeric, amount text)
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off
as $$
  select r.rail, r.reason_code, r.credit_account, r.asset, r.withdrawals, r.units, sluice.format_amount(r.units, a.decimals)
    from (
      select w.rail, w.reason_code, w.credit_account, w.asset, count(*) as withdrawals, sum(w.amount_units) as units
        from sluice.withdrawals w
       where w.rail is not null
         and ((routed.since is null and routed.until is null)
              or exists (
                select from sluice.events e
                 where e.operation_id = w.operation_id and e.detail ? 'rail'
                   and (routed.since is null or e.at >= routed.since) and (routed.until is null or e.at < routed.until)))
       group by w.rail, w.reason_code, w.credit_account, w.asset
    ) r
    join sluice.assets a on a.asset = r.asset
   order by r.rail, r.reason_code, r.credit_account, r.asset
$$;
comment on function sluice.routed is
  'What was routed from since on and before until (NULL: no bound), by rail, reason code, credited account and asset: how many, and their sums.';
