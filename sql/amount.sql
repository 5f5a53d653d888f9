-- sluice.amount: an exact decimal that no float can become. It is stored as text, and as such can be cast to text; the casts to
-- it are for assignment only, so that a column of the type takes text, numeric and integers, and refuses float4 and float8
-- with PostgreSQL's own 42804.

create function sluice.amount_out(sluice.amount) returns cstring immutable strict parallel safe language internal as 'textout';
create function sluice.amount_send(sluice.amount) returns bytea stable strict parallel safe language internal as 'textsend';

create type sluice.amount (
  input   = sluice.amount_in,
  output  = sluice.amount_out,
  receive = sluice.amount_recv,
  send    = sluice.amount_send,
  like    = text,
  category = 'U'
);
comment on type sluice.amount is 'An exact decimal, such as 12.50: digits, and a point between digits. Not a float, no sign, no exponent.';

create function sluice.amount_from_int(int) returns sluice.amount immutable strict parallel safe language sql
  as $$ select sluice.amount_from_bigint($1::bigint) $$;
create function sluice.amount_from_smallint(smallint) returns sluice.amount immutable strict parallel safe language sql
  as $$ select sluice.amount_from_bigint($1::bigint) $$;

create cast (text as sluice.amount) with function sluice.amount_from_text(text) as assignment;
create cast (varchar as sluice.amount) with function sluice.amount_from_text(text) as assignment;
create cast (numeric as sluice.amount) with function sluice.amount_from_numeric(numeric) as assignment;
create cast (bigint as sluice.amount) with function sluice.amount_from_bigint(bigint) as assignment;
create cast (int as sluice.amount) with function sluice.amount_from_int(int) as assignment;
create cast (smallint as sluice.amount) with function sluice.amount_from_smallint(smallint) as assignment;
create cast (sluice.amount as text) without function as assignment;
