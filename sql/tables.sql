-- The tables. Each one's comment says what its rows are; \d+ shows them. Three rules shape all of them: no foreign keys between
-- them (a parallel restore loads them in any order, and each costs a query a row; the guard and sluice.verify() hold what
-- they would hold); no sequences; and a column that a fresh row leaves to its trigger (hash, built_at, followed_at,
-- seen_at), so that a row that brings its own is known as restored from a dump, and kept as it is.

-- What may be the name of an account. "outside" is what the ledger calls all that is no account of ours.
create function sluice.is_account_name(name text) returns boolean
immutable parallel safe language sql
as $$ select coalesce(btrim(name, E' \t\r\n') <> '' and length(name) <= 200 and name <> 'outside', false) $$;

create table sluice.settings (
  only_row       boolean not null default true,
  time_to_live   interval not null default '300 seconds',
  freshness      interval not null default '90 seconds',
  margin_blocks  int not null default 0,
  lease          interval not null default '30 seconds',
  resend         interval not null default '75 seconds',
  attempts       int not null default 5,
  observers      int not null default 1,
  custody_function text not null default 'sluice.account_of',
  changed_by     text not null default session_user,
  change_reason  text not null default 'installed',
  constraint settings_pkey primary key (only_row),
  constraint settings_has_one_row check (only_row),
  constraint settings_freshness check (freshness between '3 seconds' and '510 seconds'),
  constraint settings_time_to_live check (
    time_to_live >= freshness + interval '90 seconds'
    and time_to_live <= interval '1 millisecond' * sluice.max_time_to_live_ms()
  ),
  constraint settings_margin_blocks check (margin_blocks between 0 and 10000),
  constraint settings_lease check (lease between '1 second' and '1 hour'),
  constraint settings_resend check (resend between '3 seconds' and '1 hour'),
  constraint settings_attempts check (attempts between 1 and 100),
  constraint settings_observers check (observers between 1 and 100)
);
comment on table sluice.settings is 'What an operator may tune, in one row. Change it with sluice.set_setting, which logs the change.';
comment on column sluice.settings.time_to_live is 'From an envelope''s reference block to its expiration, in chain time.';
comment on column sluice.settings.freshness is 'How old the newest followed block may be when an envelope is built.';
comment on column sluice.settings.margin_blocks is 'Followed blocks beyond the first at or past the expiration before a death counts.';
comment on column sluice.settings.lease is 'How long a claimed withdrawal is left to its worker.';
comment on column sluice.settings.resend is 'Between two sends of the same bytes, in chain time.';
comment on column sluice.settings.attempts is 'Envelopes that may be spent on one withdrawal before it fails.';
comment on column sluice.settings.observers is 'Logins that must file the same blocks before a death counts.';
comment on column sluice.settings.custody_function is 'Which function (address bytea, asset text) returns text says whose address of ours one is; NULL: not ours. The default reads sluice.custody.';

create table sluice.assets (
  asset              text not null,
  contract           text not null,
  decimals           int not null,
  minimum_units      numeric(38,0) not null,
  maximum_units      numeric(38,0) not null,
  fee_limit_sun      bigint not null,
  depth              int not null default 0,
  reverts_on_failure boolean not null,
  version            int not null default 1,
  changed_by         text not null default session_user,
  constraint assets_pkey primary key (asset),
  constraint assets_name check (asset ~ '^[!-~]([ -~]{0,38}[!-~])?$'),
  constraint assets_contract check (sluice.address_is_valid(contract)),
  constraint assets_decimals check (decimals between 0 and 38),
  constraint assets_limits check (minimum_units >= 1 and maximum_units >= minimum_units),
  constraint assets_fee_limit check (fee_limit_sun between 1 and 15000000000),
  constraint assets_depth check (depth between 0 and 100000),
  constraint assets_reverts_on_failure check (reverts_on_failure)
);
comment on table sluice.assets is 'The TRC-20 tokens that may be withdrawn. Change them with sluice.set_asset.';
comment on column sluice.assets.depth is 'Followed blocks beyond the including one before a success confirms; 0: as soon as it is solid.';
comment on column sluice.assets.version is 'Rises when the contract or the decimals change: what was asked for before then means something else.';

create table sluice.wallets (
  address        text not null,
  signer         text not null,
  signer_address text not null,
  permission_id  int not null default 0,
  live_window    int not null default 6000,
  added_at       timestamptz not null default sluice.now(),
  added_by       text not null default session_user,
  constraint wallets_pkey primary key (address),
  constraint wallets_address check (sluice.address_is_valid(address)),
  constraint wallets_signer check (signer in ('secp256k1', 'hmac')),
  constraint wallets_signer_address check (sluice.address_is_valid(signer_address)),
  constraint wallets_permission_id check (permission_id = 0 or permission_id between 2 and 9),
  constraint wallets_live_window check (live_window between 1 and 1000000)
);
comment on table sluice.wallets is 'The addresses that pay. Wallets are only ever added: one that once paid is ours for ever.';
comment on column sluice.wallets.live_window is 'How many live envelopes the wallet may have: what it can carry a second, times a minute and more.';

create table sluice.pauses (
  id            uuid not null default gen_random_uuid(),
  wallet        text,
  asset         text,
  reason        text not null,
  paused_at     timestamptz not null default sluice.now(),
  paused_by     text not null default session_user,
  resumed_at    timestamptz,
  resumed_by    text,
  resume_reason text,
  resumed_tip   bigint,
  constraint pauses_pkey primary key (id)
);
comment on table sluice.pauses is 'Every pause there was, and who ended it. One without wallet and asset stops building for all.';
create unique index pauses_in_force on sluice.pauses ((coalesce(wallet, '')), (coalesce(asset, ''))) where resumed_at is null;

create table sluice.changes (
  id     uuid not null default gen_random_uuid(),
  at     timestamptz not null default sluice.now(),
  by     text not null default session_user,
  what   text not null,
  before jsonb,
  after  jsonb,
  reason text,
  constraint changes_pkey primary key (id)
);
comment on table sluice.changes is 'Every change to settings, assets, wallets, custody and approval rules, the start of following, and every wish that a withdrawal ends. Pauses are their own log.';

create table sluice.withdrawals (
  operation_id   uuid not null,
  to_address     text not null,
  amount         sluice.amount not null,
  asset          text not null default 'USDT-TRC20',
  account        text,
  requested_by   text,
  submitted_by   text not null,
  destination    text not null,
  amount_units   numeric(38,0) not null,
  asset_version  int not null,
  request_hash   bytea not null,
  created_at     timestamptz not null,
  rail           sluice.rail,
  reason_code    text,
  reason         text,
  credit_account text,
  depth          int,
  posting_id     uuid,
  state          sluice.state not null default 'requested',
  due_at         timestamptz,
  leased_by      text,
  fencing_token  bigint not null default 0,
  wallet         text,
  attempt        int not null default 0,
  uncounted      int not null default 0,
  accepted       boolean not null default false,
  sent_ms        bigint,
  refusal        text,
  held_by        text,
  last_error     text,
  cancel_reason  text,
  failure_reason text,
  block_number   bigint,
  deep_at        bigint,
  confirmed_at   timestamptz,
  seq            int not null,
  hash           bytea not null,
  changed_at     timestamptz not null,
  step_seq       int,
  step_path      sluice.state[],
  step_detail    jsonb,
  step_by        text,
  constraint withdrawals_pkey primary key (operation_id),
  constraint failed_says_why check ((state <> 'failed' and state <> 'rejected') or failure_reason is not null),
  constraint confirmed_names_its_reference check (
    case when state = 'confirmed' then (block_number is null) = (posting_id is not null) and confirmed_at is not null
         else block_number is null and confirmed_at is null end
  ),
  constraint route_makes_sense check (
    case rail
      when 'internal' then sluice.is_account_name(credit_account) and depth is null and posting_id is not null and wallet is null and attempt = 0
      when 'external' then credit_account is null and coalesce(depth, -1) >= 0 and posting_id is null
      else credit_account is null and depth is null and posting_id is null and reason_code is null and reason is null
    end
    and (rail is null or coalesce(btrim(reason_code), '') <> '' and coalesce(btrim(reason), '') <> '')
  )
) with (fillfactor = 80);
comment on table sluice.withdrawals is 'One row per operation_id, for ever: what was asked for, and where it stands.';
comment on column sluice.withdrawals.destination is 'The destination exactly as asked for; to_address is its base58 form.';
comment on column sluice.withdrawals.amount is 'The amount in its shortest exact form; amount_units is the same in base units.';
comment on column sluice.withdrawals.account is 'Whose funds are held and taken, on sluice''s own ledger. NULL: the app keeps its own books.';
comment on column sluice.withdrawals.submitted_by is 'The login that submitted it.';
comment on column sluice.withdrawals.rail is 'The route, decided once: the rail, why (reason_code to group by, reason to read), and what only this rail has.';
comment on column sluice.withdrawals.credit_account is 'Internal: the account that is credited, whose address the destination was when it was routed.';
comment on column sluice.withdrawals.depth is 'External: followed blocks beyond the including one before a success confirms, as the asset had it when it was routed.';
comment on column sluice.withdrawals.posting_id is 'Internal: the posting that pays it, fixed before it is posted.';
comment on column sluice.withdrawals.cancel_reason is 'Why a person wants it to end. It ends at once where nothing built can pay it, else when the chain has decided.';
comment on column sluice.withdrawals.asset_version is 'The asset''s version at intake: says what amount_units meant.';
comment on column sluice.withdrawals.due_at is 'When a worker next looks at it: now, when its lease runs out, or later. NULL: over, or parked for a person.';
comment on column sluice.withdrawals.attempt is 'Envelopes built so far.';
comment on column sluice.withdrawals.uncounted is 'How many of them died without any node ever having taken them: they do not count as attempts.';
comment on column sluice.withdrawals.accepted is 'Whether a node said that it took the live envelope (SUCCESS or DUP).';
comment on column sluice.withdrawals.sent_ms is 'Chain time when the live envelope was last sent, as far as a worker recorded it.';
comment on column sluice.withdrawals.refusal is 'The first answer to the live envelope other than an acceptance.';
comment on column sluice.withdrawals.held_by is 'What kept a worker from building or sending it when it was last looked at.';
comment on column sluice.withdrawals.deep_at is 'The followed block at which a success on file is deep enough.';
comment on column sluice.withdrawals.seq is 'Entries in its log; hash is the last one''s. Both are the guard''s.';
comment on column sluice.withdrawals.step_seq is 'The sequence to which step_path, step_detail and step_by belong; they say nothing once it is not the row''s.';

-- Rows wait in one of two queues: those not built yet, which need a wallet's room, and those under way, which do not. So a
-- backlog never hides a withdrawal whose envelope is out.
create index withdrawals_to_start on sluice.withdrawals (due_at) where due_at is not null and attempt = 0;
create index withdrawals_under_way on sluice.withdrawals (due_at) where due_at is not null and attempt > 0;
create index withdrawals_parked on sluice.withdrawals (changed_at)
  where due_at is null and state <> 'confirmed' and state <> 'failed' and state <> 'rejected';
create index withdrawals_deepening on sluice.withdrawals (deep_at)
  where deep_at is not null and state <> 'confirmed' and state <> 'failed' and state <> 'rejected';

create table sluice.events (
  operation_id uuid not null,
  seq          int not null,
  from_state   sluice.state,
  to_state     sluice.state not null,
  at           timestamptz not null,
  worker_id    text,
  detail       jsonb not null,
  hash         bytea not null,
  constraint events_pkey primary key (operation_id, seq)
);
comment on table sluice.events is 'The log: what happened to each withdrawal, hash-chained. Written by the guard alone, never changed.';

create table sluice.envelopes (
  txid             bytea not null,
  operation_id     uuid not null,
  attempt          int not null,
  wallet           text not null,
  slot             bigint not null,
  ref_block_number bigint not null,
  time_to_live_ms  bigint not null,
  fee_limit_sun    bigint not null,
  permission_id    int not null,
  expiration_ms    bigint not null,
  raw_data         bytea not null,
  built_at         timestamptz not null,
  signature        bytea,
  fate             text,
  receipt          text,
  block_number     bigint,
  first_block      bigint,
  last_block       bigint,
  constraint envelopes_pkey primary key (txid),
  constraint envelopes_attempt unique (operation_id, attempt),
  constraint envelope_names_its_bytes check (txid = sluice.txid(raw_data)),
  constraint envelope_time_to_live check (time_to_live_ms between 1 and sluice.max_time_to_live_ms()),
  constraint envelope_fate check (
    case fate
      when 'included' then receipt is not null and block_number is not null and first_block is null and last_block is null
      when 'dead' then receipt is null and block_number is null and first_block is not null and last_block is not null
      else fate is null and receipt is null and block_number is null and first_block is null and last_block is null
    end
  )
) with (fillfactor = 70);
comment on table sluice.envelopes is 'Every TRON transaction ever built. Live (fate NULL) until a solid block holds it or coverage proves it dead.';
comment on column sluice.envelopes.slot is 'The minute of chain time whose first followed block the envelope refers to.';
comment on column sluice.envelopes.fate is 'included: block_number holds it, with that receipt. dead: no block from first_block to last_block does, and none can.';
create unique index envelopes_one_live on sluice.envelopes (operation_id) where fate is null;
create index envelopes_in_window on sluice.envelopes (wallet, expiration_ms) where fate is null;

create table sluice.chain (
  only_row     boolean not null default true,
  genesis_id   bytea not null,
  first_number bigint not null,
  started_at   timestamptz not null default sluice.now(),
  started_by   text not null default session_user,
  constraint chain_pkey primary key (only_row),
  constraint chain_has_one_row check (only_row),
  constraint chain_genesis_id check (octet_length(genesis_id) = 32)
);
comment on table sluice.chain is 'Which chain is followed, and from which block. Named once, by sluice.follow_from.';

create table sluice.blocks (
  number       bigint not null,
  id           bytea not null,
  parent_id    bytea not null,
  timestamp_ms bigint not null,
  root         bytea not null,
  transactions int not null,
  followed_at  timestamptz not null,
  constraint blocks_pkey primary key (number),
  constraint blocks_id check (octet_length(id) = 32 and octet_length(parent_id) = 32 and octet_length(root) = 32)
);
comment on table sluice.blocks is 'The solid blocks read so far, without a gap: what the database itself derived from their bytes.';
create unique index blocks_timestamp on sluice.blocks (timestamp_ms);

create table sluice.observers (
  login        text not null,
  first_number bigint not null,
  last_number  bigint not null,
  node         text not null,
  seen_at      timestamptz not null,
  constraint observers_pkey primary key (login)
);
comment on table sluice.observers is 'Which logins filed which followed blocks, each without a gap.';

create table sluice.payments (
  txid         bytea not null,
  operation_id uuid,
  block_number bigint not null,
  position     int not null,
  receipt      text not null,
  wallet       text not null,
  contract     text not null,
  to_address   text not null,
  amount_units numeric(38,0) not null,
  tag          bytea,
  seen_at      timestamptz not null,
  constraint payments_pkey primary key (txid)
);
comment on table sluice.payments is 'The transfers that left our wallets, as followed blocks show them, with what the chain says they did.';
create index payments_by_wallet on sluice.payments (wallet, block_number, position);
create index payments_by_operation on sluice.payments (operation_id);

create table sluice.custody (
  address bytea not null,
  account text not null,
  set_at  timestamptz not null default sluice.now(),
  set_by  text not null default session_user,
  constraint custody_pkey primary key (address),
  constraint custody_address check (octet_length(address) = 21),
  constraint custody_account check (sluice.is_account_name(account))
);
comment on table sluice.custody is 'Whose address of ours an address is: the 21 bytes, so that every form of it matches and no other does.';

create table sluice.accounts (
  account   text not null,
  asset     text not null,
  posted    numeric(38,0) not null default 0,
  placed    bigint not null default 0,
  opened_at timestamptz not null,
  opened_by text not null default session_user,
  closed_at timestamptz,
  constraint accounts_pkey primary key (account, asset),
  constraint accounts_name check (sluice.is_account_name(account)),
  constraint accounts_are_never_overdrawn check (posted >= 0),
  constraint closed_accounts_are_empty check (closed_at is null or posted = 0)
) with (fillfactor = 70);
comment on table sluice.accounts is 'The accounts of our own ledger, per asset. Balances follow from postings and change by nothing else.';
comment on column sluice.accounts.posted is 'Credits less debits, in base units. What is available is this less the open holds.';

comment on column sluice.accounts.placed is 'How many statements placed holds on it: written with the holds, so that a transaction whose snapshot is older cannot pass them over.';

create table sluice.postings (
  posting_id   uuid not null,
  kind         text not null,
  debit        text not null,
  credit       text not null,
  asset        text not null,
  units        numeric(38,0) not null,
  operation_id uuid,
  reference    text,
  booked_at    timestamptz not null,
  booked_by    text not null default session_user,
  constraint postings_pkey primary key (posting_id),
  constraint posting_moves_something check (units >= 1 and debit <> credit),
  constraint posting_names_its_cause check (
    case kind
      when 'deposit' then debit = 'outside' and operation_id is null and reference is not null
      when 'transfer' then credit <> 'outside' and operation_id is not null and reference is null
      when 'capture' then credit = 'outside' and operation_id is not null and reference is null
      else false
    end
  )
);
comment on table sluice.postings is
  'Double entry: each row takes units from one account and gives them to another, so that debits equal credits by its shape. outside is all that is not an account of ours.';
comment on column sluice.postings.kind is
  'deposit: a credit from outside, by reference. transfer: an internal withdrawal. capture: what an external one took from its account.';
create index postings_by_debit on sluice.postings (debit, asset);
create index postings_by_credit on sluice.postings (credit, asset);

create table sluice.holds (
  operation_id uuid not null,
  account      text not null,
  asset        text not null,
  units        numeric(38,0) not null,
  placed_at    timestamptz not null,
  ended        text,
  ended_at     timestamptz,
  constraint holds_pkey primary key (operation_id),
  constraint hold_holds_something check (units >= 1),
  constraint hold_ends_once check (ended in ('captured', 'released') and ended_at is not null or ended is null and ended_at is null)
);
comment on table sluice.holds is 'What withdrawals under way keep of their accounts'' funds: one row each, captured when it is paid, released when it is not.';
create index holds_open on sluice.holds (account, asset) include (units) where ended is null;

create table sluice.approval_rules (
  asset          text not null,
  name           text not null,
  at_least_units numeric(38,0) not null,
  approvals      int not null,
  set_at         timestamptz not null default sluice.now(),
  set_by         text not null default session_user,
  constraint approval_rules_pkey primary key (asset, at_least_units),
  constraint approval_rules_name unique (asset, name),
  constraint approval_rule_is_named check (btrim(name) <> ''),
  constraint approval_rule_starts check (at_least_units >= 0),
  constraint approval_rule_asks check (approvals between 0 and 100)
);
comment on table sluice.approval_rules is
  'How many people must approve a withdrawal, by asset and amount: the rule that starts highest at or below it. No rule: none. Change them with sluice.set_approval_rule.';

create table sluice.approvals (
  operation_id uuid not null,
  approver     text not null,
  login        text not null default session_user,
  rule         text,
  note         text,
  approved_at  timestamptz not null default sluice.now(),
  constraint approvals_pkey primary key (operation_id, approver)
);
comment on table sluice.approvals is 'Who approved what: a person counts once. The login is the person, or a voucher''s that spoke for them; rule is the one in force then.';

create table sluice.workers (
  worker_id text not null,
  seen_at   timestamptz not null,
  call      text not null,
  rows      int not null,
  constraint workers_pkey primary key (worker_id)
);
comment on table sluice.workers is 'Each worker''s last batch. Writing it also makes that batch''s commit synchronous.';

create table sluice.unsettled (
  operation_id uuid not null,
  error        text not null,
  at           timestamptz not null default sluice.now(),
  constraint unsettled_pkey primary key (operation_id)
);
comment on table sluice.unsettled is 'Withdrawals that a block decided and that could not be written: tried again with every block.';

create table sluice.tallies (
  state       sluice.state not null,
  asset       text not null,
  withdrawals bigint not null,
  units       numeric not null
);
comment on table sluice.tallies is 'Counts and sums of what is over, in parts: sluice.overview adds them up, observe_blocks folds them together.';
