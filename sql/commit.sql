-- The commits that must survive a crash of the server.

-- The commits that put an envelope or an intent on file must survive a crash of the server whatever synchronous_commit the
-- caller set. Deferred, this runs as the last thing before the commit record is written; a SET clause of a function would be
-- undone before that, so it has none. One row a batch fires it.
create function sluice.commit_synchronously() returns trigger
language plpgsql
as $$
begin
  if pg_catalog.current_setting('synchronous_commit') in ('off', 'local') then
    perform pg_catalog.set_config('synchronous_commit', 'on', true);
  end if;
  return null;
end
$$;

create constraint trigger commit_synchronously after insert or update on sluice.workers
  deferrable initially deferred
  for each row execute function sluice.commit_synchronously();
