-- What an operator looks at first: how many withdrawals stand where, and which of them need a look.

create view sluice.overview as
with live as (
  select w.state, w.asset, count(*) as withdrawals, sum(w.amount_units) as units, min(w.created_at) as oldest
    from sluice.withdrawals w
   where w.due_at is not null
   group by w.state, w.asset
  union all
  select w.state, w.asset, count(*), sum(w.amount_units), min(w.created_at)
    from sluice.withdrawals w
   where w.due_at is null and w.state <> 'confirmed' and w.state <> 'failed' and w.state <> 'rejected'
   group by w.state, w.asset
  union all
  select t.state, t.asset, sum(t.withdrawals), sum(t.units), null from sluice.tallies t group by t.state, t.asset
)
select s.state, l.asset, coalesce(sum(l.withdrawals), 0)::bigint as withdrawals, coalesce(sum(l.units), 0) as units,
       case when l.asset is not null then sluice.format_amount(sum(l.units), max(a.decimals)) end as amount,
       sluice.now() - min(l.oldest) as oldest_age,
       (select string_agg(w.address, ', ' order by w.address) from sluice.wallets w where w.signer = 'hmac') as mock_wallets
  from unnest(enum_range(null::sluice.state)) s (state)
  left join live l on l.state = s.state
  left join sluice.assets a on a.asset = l.asset
 group by s.state, l.asset;
comment on view sluice.overview is
  'Counts, sums and the oldest age by state and asset. mock_wallets names wallets whose signatures are a mock and worth nothing.';

create view sluice.stuck as
select w.operation_id, w.state, w.changed_at as since, w.asset, w.amount_units,
       case
         when u.operation_id is not null then 'could not be settled: ' || u.error
         when w.due_at is null and w.state = 'validated' then 'has ' || coalesce(sluice.missing_approvals(w.operation_id), 'its approvals, and is not due')
         when w.due_at is null then 'parked: ' || coalesce(w.last_error, 'no reason on file')
         when w.uncounted > 0 then w.uncounted || ' envelope(s) died and no node ever took one; last answer: ' || coalesce(w.last_error, 'none')
         when w.refusal is not null and not w.accepted then 'refused: ' || w.refusal
         when w.last_error is not null then w.last_error
         else 'nothing has happened for ' || (sluice.now() - w.changed_at)
       end as why,
       w.due_at as next_due
  from (
    select * from sluice.withdrawals w
     where w.due_at is not null
       and (w.uncounted > 0 or (w.refusal is not null and not w.accepted) or w.last_error is not null
            or w.operation_id in (select s.operation_id from sluice.unsettled s)
            or w.changed_at < sluice.now() - interval '1 millisecond' * 3 * sluice.max_time_to_live_ms())
    union all
    select * from sluice.withdrawals w
     where w.due_at is null and w.state <> 'confirmed' and w.state <> 'failed' and w.state <> 'rejected'
  ) w
  left join sluice.unsettled u on u.operation_id = w.operation_id;
comment on view sluice.stuck is 'Withdrawals that need a look: waiting for approvals, parked, refused by every node so far, failing, decided and not written, or unmoved for three times the longest life of an envelope.';
