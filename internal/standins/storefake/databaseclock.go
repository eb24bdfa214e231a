package storefake

import (
	"context"
	"fmt"
	"time"
)

// ownClock makes now() the service's clock for ReaderRole: its search path finds a function of ours before
// PostgreSQL's own. Only now() is ours. The function reads a table of one row, which gives the time of the
// service's clock at an instant of the server's, and its speed.
var ownClock = []string{
	"DROP TABLE IF EXISTS public.storefake_clock CASCADE",
	"CREATE TABLE public.storefake_clock (base timestamptz, at timestamptz, speed float8)",
	"INSERT INTO public.storefake_clock VALUES (pg_catalog.now(), pg_catalog.now(), 1)",
	`CREATE OR REPLACE FUNCTION public.now() RETURNS timestamptz LANGUAGE sql STABLE
AS 'SELECT base + (pg_catalog.now() - at) * speed FROM public.storefake_clock'`,
	"GRANT SELECT ON public.storefake_clock TO " + ReaderRole,
	"ALTER ROLE " + ReaderRole + " SET search_path = public, pg_catalog",
}

// createClock makes now() the service's clock. The search path holds for sessions that begin later.
func (m *mirror) createClock(ctx context.Context, clock *Clock) error {
	for _, sql := range ownClock {
		if _, err := m.pool.Exec(ctx, sql); err != nil {
			return fmt.Errorf("make now() the service's clock: %w", err)
		}
	}
	return m.setClock(ctx, clock, 0)
}

// setClock sets now() to the service's clock plus d.
func (m *mirror) setClock(ctx context.Context, clock *Clock, d time.Duration) error {
	base, at, speed := clock.reading()
	const sql = `UPDATE public.storefake_clock
SET base = $1::timestamptz, at = $2::timestamptz, speed = $3::float8`
	if _, err := m.pool.Exec(ctx, sql, base.Add(d), at, speed); err != nil {
		return fmt.Errorf("set now(): %w", err)
	}
	return nil
}
