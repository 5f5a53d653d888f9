-- What the runner's calls share: the isolation level they ask for, which errors belong to a row, and the state of things that
-- a runner asks for between its calls.

-- The runner's functions read what others commit meanwhile, statement by statement; another isolation level would show them the
-- past.
create function sluice.require_read_committed(function_name text) returns void
volatile language plpgsql
as $$
begin
  if pg_catalog.current_setting('transaction_isolation') <> 'read committed' then
    raise exception '%: runs in READ COMMITTED, and this transaction is %', function_name,
      pg_catalog.upper(pg_catalog.current_setting('transaction_isolation'))
      using errcode = 'SL006', hint = 'BEGIN ISOLATION LEVEL READ COMMITTED.';
  end if;
end
$$;

create function sluice.require_worker(worker_id text) returns void
immutable language plpgsql
as $$
begin
  perform sluice.require('worker_id', worker_id), sluice.require_short('worker_id', worker_id, 200);
end
$$;

-- Whether an error is the fault of a row in the batch, so that the others may go on without it. Deadlocks, lack of resources, an
-- operator's intervention and system errors are not: the caller hears of them.
create function sluice.is_a_rows_fault(state_code text) returns boolean
immutable strict language sql
as $$ select pg_catalog.left(state_code, 2) not in ('08', '25', '40', '53', '55', '57', '58', 'F0', 'XX') $$;

-- Files that a worker did a batch. The deferred trigger on the row makes the commit synchronous, whatever the caller set.
create function sluice.seen(worker_id text, call text, batch int) returns void
volatile language sql set search_path = pg_catalog, pg_temp
as $$
  insert into sluice.workers as w (worker_id, seen_at, call, rows)
  values (seen.worker_id, sluice.now(), seen.call, seen.batch)
  on conflict (worker_id) do update set seen_at = excluded.seen_at, call = excluded.call, rows = excluded.rows
$$;

-- Puts one row back whose turn raised an error: it gets the error and a back-off, and stops nobody else. Where not even that can
-- be written it stays as it is, and the server's log says so: a warning to the caller would undo the others' turns too.
create function sluice.set_aside(operation_id uuid, error text) returns void
volatile language plpgsql set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
begin
  update sluice.withdrawals w set
    last_error = left(set_aside.error, 500), leased_by = null,
    due_at = sluice.now() + interval '1 millisecond' * sluice.backoff_ms(1)
   where w.operation_id = set_aside.operation_id and w.due_at is not null;
exception when others then
  if not sluice.is_a_rows_fault(sqlstate) then
    raise;
  end if;
  raise log 'withdrawal % cannot be set aside: %; its turn ended with %', set_aside.operation_id, sqlerrm, set_aside.error;
end
$$;

-- How the newest envelope of each withdrawal ended, with the facts that show it: what is filed with every step that waits for
-- an end. No row where it has not ended, or where there is none. Without a SET clause, so that it is inlined.
create function sluice.evidence_of(ids uuid[]) returns table (
  operation_id uuid, txid bytea, fate text, receipt text, block_number bigint, evidence jsonb
)
stable language sql
as $$
  select e.operation_id, e.txid, e.fate, e.receipt, e.block_number,
         jsonb_strip_nulls(jsonb_build_object(
           'txid', encode(e.txid, 'hex'), 'attempt', e.attempt, 'fate', e.fate, 'receipt', e.receipt,
           'block_number', e.block_number, 'block_id', encode(b.id, 'hex'), 'block_ms', b.timestamp_ms,
           'depth', case when e.fate = 'included' then coalesce(w.depth, a.depth) end,
           'tip', (select max(t.number) from sluice.blocks t),
           'expiration_ms', e.expiration_ms,
           'first_block', e.first_block, 'first_block_id', encode(f.id, 'hex'),
           'last_block', e.last_block, 'last_block_id', encode(l.id, 'hex'), 'last_block_ms', l.timestamp_ms,
           'margin_blocks', case when e.fate = 'dead' then s.margin_blocks end,
           'observers', case when e.fate = 'dead' then s.observers end))
    from sluice.withdrawals w
    join sluice.assets a on a.asset = w.asset
   cross join sluice.settings s
    join lateral (
      select * from sluice.envelopes v where v.operation_id = w.operation_id order by v.attempt desc limit 1
    ) e on e.fate is not null
    left join sluice.blocks b on b.number = e.block_number
    left join sluice.blocks f on f.number = e.first_block
    left join sluice.blocks l on l.number = e.last_block
   where w.operation_id = any (evidence_of.ids)
$$;

create function sluice.runner_state() returns table (
  followed_number bigint, followed_id bytea, followed_ms bigint, chain_genesis bytea, now timestamptz, lease interval
)
language sql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
  select b.number, b.id, b.timestamp_ms, c.genesis_id, sluice.now(), s.lease
    from sluice.settings s
    left join sluice.chain c on true
    left join lateral (
      -- Where several observers are asked for, each login reads every block itself, from before the oldest live envelope.
      select t.number, t.id, t.timestamp_ms
        from sluice.blocks t
       where s.observers = 1
          or t.number <= coalesce(
               -- What it has read counts as far as it reaches back to the oldest live envelope's reference; else it begins there.
               (select o.last_number
                  from sluice.observers o
                 where o.login = session_user
                   and o.first_number <= coalesce((select min(e.ref_block_number) from sluice.envelopes e where e.fate is null), o.first_number) + 1),
               (select min(e.ref_block_number) from sluice.envelopes e where e.fate is null),
               t.number)
       order by t.number desc
       limit 1
    ) b on true
$$;
comment on function sluice.runner_state is 'What a runner asks between its calls: how far the chain is followed, by its login, and the lease.';

-- How many more envelopes the wallets can carry now; none while the followed chain is stale, or building is paused.
create function sluice.room() returns bigint
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(sum(greatest(0, l.live_window - (select count(*) from sluice.envelopes v where v.wallet = l.address and v.fate is null))), 0)::bigint
    from sluice.wallets l
   where not sluice.is_paused(l.address, null)
     and sluice.build_hold(
           true, false, (select max(b.timestamp_ms) from sluice.blocks b), (extract(epoch from sluice.now()) * 1000)::bigint,
           (select (extract(epoch from s.freshness) * 1000)::bigint from sluice.settings s), null, 1) is null
$$;

-- The assets that some wallet may pay now.
create function sluice.startable_assets() returns text[]
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select coalesce(array_agg(a.asset), '{}')
    from sluice.assets a
   where exists (select from sluice.wallets l where not sluice.is_paused(l.address, a.asset))
$$;

create function sluice.workload() returns table (due bigint, waiting bigint, parked bigint)
language plpgsql stable security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
declare
  v_now timestamptz := sluice.now();
  v_far timestamptz := v_now + interval '1 millisecond' * sluice.longest_wait_ms();
  v_live bigint;
begin
  select count(*) into due
    from sluice.withdrawals w
   where w.due_at is not null and w.attempt > 0 and (w.due_at <= v_now or w.due_at > v_far);
  -- What cannot be started now is not due, whatever its time says: claim_batch leaves it alone.
  if sluice.room() > 0 then
    select due + count(*) into due
      from sluice.withdrawals w
     where w.due_at is not null and w.attempt = 0 and (w.due_at <= v_now or w.due_at > v_far)
       and w.asset = any (sluice.startable_assets());
  end if;
  select (select count(*) from sluice.withdrawals w where w.due_at is not null and w.attempt = 0)
         + (select count(*) from sluice.withdrawals w where w.due_at is not null and w.attempt > 0)
    into v_live;
  waiting := v_live - due;
  select count(*) into parked
    from sluice.withdrawals w
   where w.due_at is null and w.state <> 'confirmed' and w.state <> 'failed' and w.state <> 'rejected';
  return next;
end
$$;
comment on function sluice.workload is
  'How many live withdrawals a worker could do something for now, how many wait for a time, a block or room, and how many for a person.';
