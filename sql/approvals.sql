-- Approvals: how many people must agree before a withdrawal is handed to its rail, and who did. The rules in force then decide, when it
-- is approved and again when it is handed over.

-- What follows when the rules of an asset have changed: withdrawals that wait for approvals are measured anew.
create function sluice.measure_again(asset text) returns void
language plpgsql volatile set search_path = pg_catalog, pg_temp
as $$
#variable_conflict use_column
declare
  v_ids uuid[];
begin
  v_ids := array(
    select w.operation_id from sluice.withdrawals w
     where w.due_at is null and w.state = 'validated' and w.asset = measure_again.asset order by w.operation_id for update);
  v_ids := array(select p.operation_id from sluice.approvals_of(v_ids) p where p.given >= p.needed order by p.operation_id);
  perform sluice.hand_over(
            array(select w.operation_id from sluice.withdrawals w where w.operation_id = any (v_ids) and w.rail = 'internal' order by w.operation_id),
            session_user);
  update sluice.withdrawals w set due_at = sluice.now(), held_by = null
   where w.operation_id = any (v_ids) and w.state = 'validated' and w.due_at is null;
end
$$;

-- The rules of an asset, as the log of changes shows them.
create function sluice.rules_of(asset text) returns jsonb
language sql stable set search_path = pg_catalog, pg_temp
as $$
  select jsonb_build_object('asset', rules_of.asset, 'rules', coalesce(jsonb_agg(
           jsonb_build_object('name', r.name, 'at_least_units', r.at_least_units, 'approvals', r.approvals) order by r.at_least_units), '[]'))
    from sluice.approval_rules r
   where r.asset = rules_of.asset
$$;

-- Checks what a rule is to say, and returns the amount it starts at in base units.
create function sluice.rule_start(asset text, at_least text, argument text) returns numeric
language plpgsql stable set search_path = pg_catalog, pg_temp
as $$
declare
  v_start numeric;
begin
  perform sluice.require_asset(rule_start.asset), sluice.require(rule_start.argument, rule_start.at_least);
  v_start := sluice.amount_argument(rule_start.at_least, (select a.decimals from sluice.assets a where a.asset = rule_start.asset), rule_start.argument);
  if v_start >= 1e38 then
    raise exception '%: exceeds numeric(38,0) in base units', rule_start.argument using errcode = 'SL005', hint = 'No withdrawal can be that large.';
  end if;
  return v_start;
end
$$;

create function sluice.set_approval_rule(asset text, name text, at_least text, approvals int) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_start numeric;
  v_before jsonb;
  v_other text;
begin
  perform sluice.alone();
  v_start := sluice.rule_start(set_approval_rule.asset, set_approval_rule.at_least, 'at_least');
  perform sluice.require('name', set_approval_rule.name), sluice.require_short('name', set_approval_rule.name, 100),
          sluice.require('approvals', set_approval_rule.approvals::text);
  if set_approval_rule.approvals not between 0 and 100 then
    raise exception 'approvals: must be between 0 and 100' using errcode = 'SL005';
  end if;
  if set_approval_rule.name = 'default' and v_start <> 0 then
    raise exception 'at_least: the rule "default" starts at zero' using errcode = 'SL005', hint = 'Give the rule for larger amounts a name of its own.';
  end if;
  v_before := sluice.rules_of(set_approval_rule.asset);
  if v_start <> 0 and exists (
       select from sluice.approval_rules r
        where r.asset = set_approval_rule.asset and r.name = set_approval_rule.name and r.at_least_units = 0) then
    raise exception 'at_least: rule "%" starts at zero, and one rule must', set_approval_rule.name
      using errcode = 'SL005', hint = 'Give the rule for larger amounts a name of its own.';
  end if;
  delete from sluice.approval_rules r
   where r.asset = set_approval_rule.asset
     -- The one of this name, or the default that asks for none and gives way.
     and (r.name = set_approval_rule.name or v_start = 0 and r.at_least_units = 0 and r.name = 'default' and r.approvals = 0);
  select r.name into v_other from sluice.approval_rules r where r.asset = set_approval_rule.asset and r.at_least_units = v_start;
  if found then
    raise exception 'at_least: rule "%" starts there already', v_other
      using errcode = 'SL005', hint = 'Change that rule by its name, or start this one elsewhere.';
  end if;
  insert into sluice.approval_rules (asset, name, at_least_units, approvals)
  values (set_approval_rule.asset, set_approval_rule.name, v_start, set_approval_rule.approvals);
  insert into sluice.changes (what, before, after) values ('approval_rules', v_before, sluice.rules_of(set_approval_rule.asset));
  perform sluice.measure_again(set_approval_rule.asset);
end
$$;
comment on function sluice.set_approval_rule is
  'Sets how many people must approve withdrawals of at_least this much (a decimal), up to where the next rule starts. Named, one a start; one must start at zero, and the default asks for none.';

create function sluice.drop_approval_rule(asset text, name text) returns boolean
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_before jsonb;
  v_start numeric;
begin
  perform sluice.alone();
  perform sluice.require_asset(drop_approval_rule.asset), sluice.require('name', drop_approval_rule.name);
  v_before := sluice.rules_of(drop_approval_rule.asset);
  select r.at_least_units into v_start from sluice.approval_rules r where r.asset = drop_approval_rule.asset and r.name = drop_approval_rule.name;
  if not found then
    return false;
  end if;
  if v_start = 0 then
    raise exception 'name: rule "%" starts at zero, and one rule must', drop_approval_rule.name
      using errcode = 'SL005', hint = 'Change it with sluice.set_approval_rule.';
  end if;
  delete from sluice.approval_rules r where r.asset = drop_approval_rule.asset and r.name = drop_approval_rule.name;
  insert into sluice.changes (what, before, after) values ('approval_rules', v_before, sluice.rules_of(drop_approval_rule.asset));
  perform sluice.measure_again(drop_approval_rule.asset);
  return true;
end
$$;
comment on function sluice.drop_approval_rule is 'Takes a rule away: the one that starts next below it decides instead. Returns whether it was there.';

create function sluice.four_eyes(asset text, above text) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  v_start numeric;
  v_before jsonb;
begin
  perform sluice.alone();
  v_start := sluice.rule_start(four_eyes.asset, four_eyes.above, 'above');
  if v_start = 0 then
    raise exception 'above: must be more than zero' using errcode = 'SL005', hint = 'For two approvers of every amount, set one rule at zero with sluice.set_approval_rule.';
  end if;
  v_before := sluice.rules_of(four_eyes.asset);
  delete from sluice.approval_rules r where r.asset = four_eyes.asset;
  insert into sluice.approval_rules (asset, name, at_least_units, approvals)
  values (four_eyes.asset, 'single-approver', 0, 1), (four_eyes.asset, 'four-eyes', v_start, 2);
  insert into sluice.changes (what, before, after) values ('approval_rules', v_before, sluice.rules_of(four_eyes.asset));
  perform sluice.measure_again(four_eyes.asset);
end
$$;
comment on function sluice.four_eyes is 'The usual pair, in place of all rules of the asset: one approver below this amount, two distinct ones from it on.';

-- Whether a login speaks for its own users: a member of sluice_voucher, by grants. (A superuser is a member of everything, and a person.)
create function sluice.is_voucher(login name) returns boolean
language sql stable set search_path = pg_catalog, pg_temp
as $$
  with recursive of_roles (roleid) as (
    select r.oid from pg_roles r where r.rolname = is_voucher.login
    union
    select m.roleid from pg_auth_members m join of_roles o on m.member = o.roleid
  )
  select exists (select from of_roles o join pg_roles r on r.oid = o.roleid where r.rolname = 'sluice_voucher')
$$;

create function sluice.approve(operation_id uuid, note text default null, on_behalf_of text default null) returns sluice.state
language plpgsql security definer set search_path = pg_catalog, pg_temp set jit = off set enable_seqscan = off
as $$
#variable_conflict use_column
declare
  w sluice.withdrawals;
  v_voucher constant boolean := sluice.is_voucher(session_user);
  v_approver text;
  v_rule record;
begin
  perform sluice.require('operation_id', approve.operation_id::text), sluice.require_short('note', approve.note, 1000);
  if v_voucher then
    perform sluice.require('on_behalf_of', approve.on_behalf_of), sluice.require_short('on_behalf_of', approve.on_behalf_of, 200);
    v_approver := btrim(approve.on_behalf_of, E' \t\r\n');
  elsif approve.on_behalf_of is not null then
    raise exception 'on_behalf_of: % approves for itself', session_user
      using errcode = 'SL033', hint = 'Leave it out. Only members of sluice_voucher speak for others.';
  else
    v_approver := session_user;
  end if;

  w := sluice.lock_withdrawal(approve.operation_id);
  -- Twice by the same person counts once, whenever it is repeated.
  if exists (select from sluice.approvals p where p.operation_id = w.operation_id and p.approver = v_approver) then
    return w.state;
  end if;
  if w.state <> 'requested' and w.state <> 'validated' then
    raise exception 'withdrawal % is %: nothing waits for an approval', w.operation_id, w.state
      using errcode = 'SL033', hint = 'Approvals count before it is handed to its rail.';
  end if;
  if v_approver = w.requested_by or (not v_voucher and v_approver = w.submitted_by) then
    raise exception 'approver: % asked for withdrawal %', v_approver, w.operation_id
      using errcode = 'SL033', hint = 'Somebody else must approve it.';
  end if;
  select p.rule, p.needed into v_rule from sluice.approvals_of(array[w.operation_id]) p;
  insert into sluice.approvals (operation_id, approver, rule, note) values (w.operation_id, v_approver, v_rule.rule, approve.note);
  update sluice.withdrawals x set
    step_seq = x.seq, step_path = array[x.state], step_by = session_user,
    step_detail = jsonb_build_array(jsonb_strip_nulls(jsonb_build_object(
      'approved_by', v_approver, 'login', session_user, 'rule', v_rule.rule, 'needed', v_rule.needed, 'note', approve.note)))
   where x.operation_id = w.operation_id;
  if w.state = 'requested' or sluice.missing_approvals(w.operation_id) is not null then
    return w.state;
  end if;
  if w.rail = 'internal' then
    perform sluice.hand_over(array[w.operation_id], session_user);
  else
    update sluice.withdrawals x set due_at = sluice.now(), held_by = null where x.operation_id = w.operation_id and x.due_at is null;
  end if;
  return (select x.state from sluice.withdrawals x where x.operation_id = w.operation_id);
end
$$;
comment on function sluice.approve is
  'Approves a withdrawal as the session''s own login or, for a member of sluice_voucher, on somebody''s behalf. Not by who asked for it; a person counts once. With the last approval it is handed to its rail.';
