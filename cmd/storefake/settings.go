package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/storefake"
)

// settings is the command line before it is checked.
type settings struct {
	storefake.Config
	traffic float64
	clock   string
	faults  map[string]string
}

// declare declares the flags. Their defaults are the plainest service.
func (s *settings) declare(f *pflag.FlagSet) {
	f.SortFlags = false
	f.StringVar(&s.Listen, "listen", "127.0.0.1:8090", "address of the REST service; port 0: any free one")
	f.StringVar(&s.Base, "base", "/v1", "path of the base address")
	f.Uint64Var(&s.Seed, "seed", 1, "of the history, of traffic's choices and of faults")
	f.IntVar(&s.Size.Users, "users", 10000, "users of the history")
	f.IntVar(&s.Size.Orders, "orders", 12500, "orders of the history, each with 1 to 4 items and a shipment")
	f.IntVar(&s.Size.Products, "products", 2900, "products of the history")
	f.IntVar(&s.Size.Days, "days", 1095, "days that the history covers, ending now")
	f.Float64Var(&s.traffic, "traffic", 0, "transactions a second; 0: rows stand still")
	f.StringVar(&s.clock, "clock", "", "RFC 3339 instant at which the service's clock starts (default now)")
	f.DurationVar(&s.Offset, "clock-offset", 0, "how far the service's clock is ahead of that")
	f.Float64Var(&s.Speed, "clock-speed", 1, "pace of the service's clock: 1440 makes a day last a minute")
	f.BoolVar(&s.WholeSeconds, "whole-seconds", false,
		"stamp whole seconds, also in PostgreSQL (default: microseconds there, of which REST shows the second)")
	s.declareDatabase(f)
	s.declareReadings(f, &s.Readings)
	s.declareLimits(f, &s.Readings)
	s.declareFaults(f)
}

func (s *settings) declareDatabase(f *pflag.FlagSet) {
	f.StringVar(&s.Database.DSN, "postgres", "",
		"DSN of an administrator; orders and order_items are created there anew (default $STOREFAKE_POSTGRES)")
	f.StringVar(&s.Database.Password, "postgres-password", "student", "password of role student_ro")
	f.StringVar(&s.Database.Columns.Int, "postgres-int", "int8", "type of ids: int8, int4")
	f.StringVar(&s.Database.Columns.Money, "postgres-money", "numeric",
		"type of money: numeric, float8, float4, text")
	f.StringVar(&s.Database.Columns.Time, "postgres-time", "timestamptz",
		"type of instants: timestamptz, timestamp (UTC)")
	f.StringVar(&s.Database.Columns.Status, "postgres-status", "text", "type of status: text, varchar")
	f.BoolVar(&s.Database.NoIndex, "postgres-no-index", false, "leave out the indexes on (updated_at, id)")
	f.DurationVar(&s.Database.StatementTimeout, "postgres-statement-timeout", time.Minute, "of role student_ro")
}

// declareReadings declares what the document leaves open.
func (s *settings) declareReadings(f *pflag.FlagSet, r *storefake.Readings) {
	f.Var(text(&r.Count), "count", "what meta.count counts: total, page")
	f.Var(text(&r.PastEnd), "past-end", "a page beyond the last: empty, 400, 404")
	f.Var(text(&r.Oversize), "oversize", "a page_size above 1000: capped, refused")
	f.IntVar(&r.MaxPage, "max-page", 0, "grant no more rows a page than this")
	f.Var(text(&r.Order), "order",
		"order of rows: id, updated, updated-desc, hash (arbitrary), shuffle (another on every request)")
	f.BoolVar(&r.PermuteTies, "permute-ties", false,
		"with --order updated or updated-desc: rows of one second in another order on every request")
	f.Float64Var(&r.EmptyPages, "empty-pages", 0,
		"share of the pages that are empty though more follow (no row is lost by it)")
	f.Float64Var(&r.ShortPages, "short-pages", 0, "share of the pages that are half full though more follow")
	f.Var(text(&r.MoneyForm), "money",
		"form of money: as-is (49, 59.990001678466797), padded (49.00), string (\"49.00\"), exponent (49e0)")
	f.BoolVar(&r.ExtraFields, "extra-fields", false, "fields that the document does not know")
	f.Float64Var(&r.Nulls, "nulls", 0,
		"share of values that are null, in all fields but id, created_at and updated_at")
	f.Float64Var(&r.NewStatuses, "new-statuses", 0, "share of order states that the document does not name")
	f.Float64Var(&r.Deletes, "deletes", 0, "share of traffic's changes that delete a row")
	f.BoolVar(&r.NoDate, "no-date", false, "no Date header")
	f.DurationVar(&r.DayOffset, "day-offset", 0, "days are cut in a zone so far east of UTC")
	f.DurationVar(&r.Delay, "delay", 0,
		"a row can be queried only so long after its updated_at, by the service's clock")
}

func (s *settings) declareLimits(f *pflag.FlagSet, r *storefake.Readings) {
	f.Float64Var(&r.Limit.PerSecond, "limit", 0, "requests a second; 0: any number")
	f.IntVar(&r.Limit.Burst, "limit-burst", 0, "requests at once (default: one second's worth)")
	f.IntVar(&r.Limit.Status, "limit-status", 429, "status of a refused request: 429, 503")
	f.Var(text(&r.Limit.RetryAfter), "retry-after", "form of Retry-After: seconds, date, zero, absent")
	f.BoolVar(&r.Limit.HTML, "limit-html", false, "an HTML body with it")
	f.DurationVar(&r.Keys.Lifetime, "key-lifetime", 0, "a key is good for so long; 0: for ever")
	f.IntVar(&r.Keys.Requests, "key-requests", 0, "a key is good for so many requests; 0: any number")
}

func (s *settings) declareFaults(f *pflag.FlagSet) {
	f.StringToStringVar(&s.faults, "fault", nil, "share of data requests that go wrong, such as 500=0.02; "+
		"again for each of: 500, 500-html, limited, 401,\n"+
		"revoke, truncated, cut, endless, slow, hang, reset, redirect, more-forever")
	f.DurationVar(&s.Faults.SlowFor, "slow-for", 5*time.Second, "how long a slow body takes")
	f.StringVar(&s.Faults.RedirectTo, "redirect-to", "",
		"where a redirect leads (default: an HTML page of this server)")
	f.Float64Var(&s.Faults.GarbledRows, "garbled-rows", 0,
		"share of rows that break the document's contract over REST")
}

// config is the settings as a Config, or all that is wrong with them at once.
func (s *settings) config() (storefake.Config, error) {
	var errs []error
	if s.clock != "" {
		start, err := time.Parse(time.RFC3339, s.clock)
		if err != nil {
			errs = append(errs, fmt.Errorf("clock %q: expected RFC 3339, such as 2026-11-20T23:50:00Z", s.clock))
		}
		s.Start = start
	}
	if s.traffic < 0 {
		errs = append(errs, fmt.Errorf("traffic %v: expected 0 or more", s.traffic))
	}
	s.Faults.Shares = map[storefake.Fault]float64{}
	for fault, share := range s.faults {
		v, err := strconv.ParseFloat(share, 64)
		if err != nil {
			errs = append(errs, fmt.Errorf("fault %s=%s: expected a share from 0 to 1", fault, share))
		}
		s.Faults.Shares[storefake.Fault(fault)] = v
	}
	return s.Config, errors.Join(append(errs, s.Check())...)
}

// textValue is a flag whose default has a name on the command line, and is empty in the Readings.
type textValue[T ~string] struct{ to *T }

func text[T ~string](to *T) pflag.Value { return textValue[T]{to} }

// defaults are the names of the empty values.
var defaults = map[string]bool{"total": true, "empty": true, "capped": true, "id": true, "as-is": true,
	"seconds": true}

func (v textValue[T]) String() string { return string(*v.to) }
func (v textValue[T]) Type() string   { return "string" }
func (v textValue[T]) Set(s string) error {
	if defaults[s] {
		s = ""
	}
	*v.to = T(s)
	return nil
}
