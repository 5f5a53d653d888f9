-- The pure functions that the contract writes with sluice's own types. Their Rust halves take labels.

create function sluice.can_transition(from_state sluice.state, to_state sluice.state) returns boolean
immutable strict parallel safe language sql
as $$ select sluice.chart_has(from_state::text, to_state::text) $$;
comment on function sluice.can_transition is 'Whether the chart has this step.';

create function sluice.transitions() returns table (from_state sluice.state, to_state sluice.state, stars text)
immutable parallel safe language sql
as $$ select c.from_state::sluice.state, c.to_state::sluice.state, c.stars from sluice.chart() c $$;
comment on function sluice.transitions is
  'The chart. *: only when every envelope of the withdrawal is dead, or included with a failed result. **: only with a SUCCESS inclusion at the asset''s depth.';

-- A step's details: one object for each entry of the log, the last one given and the others empty.
create function sluice.details(entries int, last_detail jsonb) returns jsonb
immutable strict parallel safe language sql
as $$ select ('[' || repeat('{},', entries - 1) || last_detail::text || ']')::jsonb $$;

-- What the log says of a withdrawal that ends because a person wanted it to.
create function sluice.cancellation(reason text) returns jsonb
immutable strict parallel safe language sql
as $$ select jsonb_build_object('reason_code', 'cancelled', 'reason', reason) $$;

comment on function sluice.parse_amount is 'Decimal text to base units, exact at any length.';
comment on function sluice.format_amount is 'Base units to the shortest exact decimal.';
comment on function sluice.request_hash is 'The hash that two requests share exactly when they ask for the same.';
comment on function sluice.address_is_valid is 'Whether the text is an address in a form that sluice takes.';
comment on function sluice.address_bytes is 'The 21 bytes of an address.';
comment on function sluice.address_text is 'The base58 form of an address''s 21 bytes.';
comment on function sluice.raw_data is 'The exact protobuf bytes of one transfer''s Transaction.raw.';
comment on function sluice.txid is 'The id of the transaction with this raw_data: its sha256.';
comment on function sluice.tag is 'The 16 bytes that name a withdrawal in its envelopes.';
comment on function sluice.decode_raw_data is 'What the bytes of a Transaction.raw say.';
comment on function sluice.signed_transaction is 'The whole transaction, as /wallet/broadcasthex takes it in hex.';
comment on function sluice.decode_block is 'What the bytes of a Block say.';
comment on function sluice.now is 'The clock: the time of day, or what the setting sluice.now makes of it in tests.';
