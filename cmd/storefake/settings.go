package main

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/spf13/pflag"

	"github.com/storestream/storestream/internal/standins/storefake"
)

// settings is the command line before it is checked.
type settings struct {
	storefake.Config
	traffic float64
	clock   string
	faults  map[string]string
	schedule
	turns []turn // of schedule, from config
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
	f.Float64Var(&s.traffic, "traffic", 0, "transactions a second (0 makes none)")
	f.StringVar(&s.clock, "clock", "", "RFC 3339 instant at which the service's clock starts (default now)")
	f.DurationVar(&s.Offset, "clock-offset", 0, "how far the service's clock is ahead of that")
	f.Float64Var(&s.Speed, "clock-speed", 1, "pace of the service's clock: 1440 makes a day last a minute")
	f.BoolVar(&s.WholeSeconds, "whole-seconds", false,
		"stamp whole seconds, also in PostgreSQL (default: microseconds there; REST never shows the fraction)")
	s.declareDatabase(f)
	s.declareReadings(f, &s.Readings)
	s.declareLimits(f, &s.Readings)
	s.declareRows(f, &s.Readings)
	s.declareAges(f, &s.Readings)
	s.declareHabits(f, &s.Readings)
	s.declareFaults(f)
	s.declareSchedule(f)
}

func (s *settings) declareDatabase(f *pflag.FlagSet) {
	f.StringVar(&s.Database.DSN, "postgres", "",
		"DSN of an administrator; replaces the tables orders and order_items (default $STOREFAKE_POSTGRES)")
	f.StringVar(&s.Database.Password, "postgres-password", "student", "password of role student_ro")
	f.StringVar(&s.Database.Columns.Int, "postgres-int", "int8", "type of ids: int8, int4")
	f.StringVar(&s.Database.Columns.Money, "postgres-money", "numeric",
		"type of money: numeric, float8, float4, text")
	f.StringVar(&s.Database.Columns.Time, "postgres-time", "timestamptz",
		"type of instants: timestamptz, timestamp (UTC)")
	f.StringVar(&s.Database.Columns.Status, "postgres-status", "text", "type of status: text, varchar")
	f.BoolVar(&s.Database.NoIndex, "postgres-no-index", false, "leave out the indexes on (updated_at, id)")
	f.BoolVar(&s.Database.OwnClock, "postgres-own-clock", false,
		"make now() the service's clock for student_ro: a database whose clock differs, runs fast or steps")
	f.DurationVar(&s.Database.StatementTimeout, "postgres-statement-timeout", time.Minute, "of role student_ro")
}

// declareReadings declares the flags for pages and times that the document leaves open.
func (s *settings) declareReadings(f *pflag.FlagSet, r *storefake.Readings) {
	f.Var(text(&r.Count), "count",
		"meaning of meta.count: total, page, estimate (up to a fifth too much or too little)")
	f.Var(text(&r.HasMore), "has-more",
		"when meta.has_more is true: follows (more rows follow), full (or the page is full), always")
	f.Var(text(&r.PastEnd), "past-end", "a page beyond the last: empty, 400, 404, last (that one once more)")
	f.Var(text(&r.Oversize), "oversize", "a page_size above 1000: capped, refused")
	f.IntVar(&r.MaxPage, "max-page", 0, "grant no more rows a page than this")
	f.IntVar(&r.PageTurns, "page-turns", 0,
		"change the rows granted a page after this many requests: to --max-page, a half or a third of it")
	f.Var(text(&r.PageWord), "page-word",
		"the value of meta.page_size: granted, asked (the number asked for, even if fewer are granted), absent")
	f.IntVar(&r.MaxPages, "max-pages", 0,
		"end every listing after this many pages, without a hint in meta: a silent cap")
	f.Var(text(&r.Order), "order",
		"order of rows: id, updated, updated-desc, pinned (updated, but some rows always come first, "+
			"even after a change), hash (arbitrary), shuffle (another on every request)")
	f.BoolVar(&r.PermuteTies, "permute-ties", false,
		"with --order updated or updated-desc: rows of one second in another order on every request")
	f.Float64Var(&r.EmptyPages, "empty-pages", 0,
		"share of the pages that are empty though more follow (no row is lost by it)")
	f.Float64Var(&r.ShortPages, "short-pages", 0, "share of the pages that are half full though more follow")
	f.BoolVar(&r.NoDate, "no-date", false, "no Date header")
	f.BoolVar(&r.UpdatedToMidnight, "updated-to-midnight", false,
		"updated_to ends at midnight, the first instant of its day; see also --created-to-midnight")
	f.BoolVar(&r.CreatedToMidnight, "created-to-midnight", false, "the same for created_to")
	f.DurationVar(&r.DayOffset, "day-offset", 0, "days begin at midnight of a zone this far east of UTC")
	f.DurationVar(&r.CreatedOffset, "created-offset", 0,
		"midnight of created_* lies this much further east than that of updated_*")
	f.DurationVar(&r.Delay, "delay", 0,
		"hide a row from queries for this long after its updated_at, by the service's clock")
}

// declareRows declares the flags for rows that the document leaves open.
func (s *settings) declareRows(f *pflag.FlagSet, r *storefake.Readings) {
	f.Var(text(&r.MoneyForm), "money",
		"form of money: as-is (49, 59.990001678466797), padded (49.00), string (\"49.00\"), exponent (49e0), "+
			"stripped (1E+3, Java's BigDecimal)")
	f.BoolVar(&r.ExtraFields, "extra-fields", false, "fields that the document does not know")
	f.StringSliceVar(&r.Without, "without", nil,
		"fields that rows over REST lack, such as users.city,orders.status; with --from and --until they "+
			"vanish and come back. With --postgres the columns of orders and order_items are renamed as well, to "+
			"status_renamed, and traffic writes them under that name")
	f.Float64Var(&r.Nulls, "nulls", 0,
		"share of values that are null, in all fields but id, created_at and updated_at")
	f.Float64Var(&r.NewStatuses, "new-statuses", 0, "share of order states that the document does not name")
	f.Float64Var(&r.Deletes, "deletes", 0, "share of traffic's changes that delete a row")
	f.Float64Var(&r.UsedIDs, "used-ids", 0, "share of traffic's new rows that get the id of a deleted one")
}

// declareAges declares how answers can be older than the rows.
func (s *settings) declareAges(f *pflag.FlagSet, r *storefake.Readings) {
	f.IntVar(&r.Replicas, "replicas", 0,
		"answer from this many copies in turn, so that rows seem to go back and forth")
	f.DurationVar(&r.ReplicaLag, "replica-lag", 0,
		"lag of the last copy, by the service's clock; the first has none, the others lie in between")
	f.DurationVar(&r.Cache.For, "cache", 0,
		"put an HTTP cache in front that repeats an answer for this long, by the service's clock")
	f.BoolVar(&r.Cache.NoAge, "cache-no-age", false,
		"the cache sends no Age, so that only Date shows how old an answer is")
	f.BoolVar(&r.Cache.NewDate, "cache-new-date", false,
		"the cache sends a Date of its own, so that only Age shows how old an answer is")
	f.BoolVar(&r.Cache.Deaf, "cache-deaf", false, "the cache ignores a request's Cache-Control")
}

func (s *settings) declareLimits(f *pflag.FlagSet, r *storefake.Readings) {
	f.Float64Var(&r.Limit.PerSecond, "limit", 0, "requests a second (0 sets no limit)")
	f.IntVar(&r.Limit.Burst, "limit-burst", 0, "requests at once (default: one second's worth)")
	f.IntVar(&r.Limit.Status, "limit-status", 429, "status of a refused request: 429, 503, 403, 420")
	f.Var(text(&r.Limit.RetryAfter), "retry-after", "form of Retry-After: seconds, date, zero, absent")
	f.BoolVar(&r.Limit.HTML, "limit-html", false, "send an HTML body with a refused request")
	f.DurationVar(&r.Keys.Lifetime, "key-lifetime", 0, "a key is good for this long (0 sets no limit)")
	f.IntVar(&r.Keys.Requests, "key-requests", 0, "a key is good for this many requests (0 sets no limit)")
}

// declareHabits declares the flags for the forms that the document leaves to the service's framework.
func (s *settings) declareHabits(f *pflag.FlagSet, r *storefake.Readings) {
	h := &r.Habits
	f.Var(stackValue{r}, "stack",
		"habits of a framework; the flags after it change single ones:"+stackTexts())
	f.Var(text(&h.Times), "times", "form of instants: as-is (2026-11-25T10:15:00Z), python (+00:00), "+
		"js (.000Z), java (10:15Z),\ndotnet (.0000000Z), laravel (.000000Z), postgres (2026-11-25 10:15:00+00), "+
		"bigquery (2026-11-25 10:15:00 UTC)")
	f.BoolVar(&h.Fractions, "fractions", false,
		"show fractions of seconds, as far as --times has digits for them")
	f.Var(text(&h.Integers), "integers", "form of integers in rows: as-is, strings (node-postgres' int8), "+
		"floats (34.0, as pandas\nmakes of a column with nulls, not of ids)")
	f.Var(text(&h.Nulls), "null-form", "form of null: as-is, nan (Python's json.dumps; instants are null), "+
		"absent (Jackson's NON_NULL),\nempty (\"\", of instants), zero-date (MySQL's 0000-00-00 00:00:00, of "+
		"instants)")
	f.Var(text(&h.Meta), "meta-form", "form of numbers in meta: as-is, strings (node-postgres' count(*)), "+
		"floats (1000.0),\nexponent (1000e0)")
	f.Var(text(&h.More), "has-more-form",
		"form of meta.has_more: as-is, string (\"true\"), number (1, MySQL's boolean),\n"+
			"absent (Go's omitempty leaves out false), null (the last page has meta: null)")
	f.Var(text(&h.Empty), "empty-form",
		"data of a page without rows: as-is ([]), null (Go's nil slice), absent (Go's omitempty)")
	f.Var(text(&h.Case), "case",
		"case of the keys around rows: as-is (has_more), camel (ASP.NET Core's hasMore), pascal (HasMore)")
	f.BoolVar(&h.Surplus, "surplus-keys", false,
		"meta first, and keys around the rows that the document does not have")
	f.BoolVar(&h.Mark, "byte-order-mark", false,
		"a byte order mark before each JSON body, as of a PHP file that has one")
	f.Var(text(&h.Errors), "errors", "form of errors: as-is, fastapi (422 detail), nest (statusCode), "+
		"spring (no message), problem\n(RFC 9457, ASP.NET Core), laravel (422 errors), wordpress (rest_..., "+
		"WooCommerce)")
	f.IntVar(&h.KeyStatus, "key-status", 401, "status for a key that is not good: 401, 403")
	f.BoolVar(&h.Slash, "slash", false,
		"redirect to the path with a slash at its end, as Django's APPEND_SLASH does")
	f.BoolVar(&h.RateHeaders, "rate-headers", false, "X-RateLimit-* headers, as Laravel's throttle sends them")
	f.Var(refusalsValue{r}, "refuse", "requests to refuse, as question:limit=status or =silence, and of one "+
		"resource as\nusers/question:limit=status; repeat it. past:10000=400: pages beyond that row "+
		"(Elasticsearch's\nmax_result_window; Akeneo 422, NetSuite past:100000); rows:500=504: pages of more "+
		"rows; row:7=500: pages\nwith that row (FastAPI's NaN); before:1753=400: dates in years before (SQL "+
		"Server's datetime);\nafter:9998=500: dates in years after; future:0=422: dates more than so many days "+
		"after today")
}

// stackValue is a flag that sets a stack's habits.
type stackValue struct{ to *storefake.Readings }

func (v stackValue) String() string     { return "" }
func (v stackValue) Type() string       { return "name" }
func (v stackValue) Set(s string) error { return storefake.Stack(s).Apply(v.to) }

// stackTexts is the help's text about each stack.
func stackTexts() string {
	text := ""
	for _, stack := range storefake.Stacks {
		text += fmt.Sprintf("\n  %s: %s", stack, storefake.About[stack])
	}
	return text
}

// refusalsValue is a flag that adds a refusal each time.
type refusalsValue struct{ to *storefake.Readings }

func (v refusalsValue) String() string { return "" }
func (v refusalsValue) Type() string   { return "refusal" }
func (v refusalsValue) Set(s string) error {
	refusal, err := storefake.ParseRefusal(s)
	v.to.Refusals = append(v.to.Refusals, refusal)
	return err
}

func (s *settings) declareFaults(f *pflag.FlagSet) {
	f.StringToStringVar(&s.faults, "fault", nil, "share of data requests that fail, such as 500=0.02; "+
		"repeat it for each of: 500, 500-html, limited, 401,\n"+
		"revoke, truncated, cut, endless, slow, hang, reset, redirect, more-forever, wrong-date")
	f.DurationVar(&s.Faults.SlowFor, "slow-for", 5*time.Second, "how long a slow body takes")
	f.DurationVar(&s.Faults.DateOff, "date-off", time.Hour, "how far a wrong Date is ahead")
	f.StringVar(&s.Faults.RedirectTo, "redirect-to", "",
		"target of a redirect (default: an HTML page of this server)")
	f.Float64Var(&s.Faults.GarbledRows, "garbled-rows", 0,
		"share of rows that break the document's contract over REST")
}

// declareSchedule declares the events of a run. Times are by the machine's clock, since the start.
func (s *settings) declareSchedule(f *pflag.FlagSet) {
	f.DurationVar(&s.from, "from", 0,
		"readings and faults begin this long after the start; until then the service is at its plainest")
	f.DurationVar(&s.until, "until", 0, "readings and faults end this long after the start (0 keeps them on)")
	f.StringToStringVar(&s.steps, "clock-step", nil,
		"when the service's clock steps, and by how much, such as 30s=-5m; repeat it for each step")
	f.StringToStringVar(&s.restores, "restore", nil,
		"when the service is restored, and the time of the backup: 3m=1m brings back at 3m the rows of 1m, "+
			"and gives out ids again; repeat it for each restore")
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
	errs = append(errs, s.Check())
	var err error
	s.turns, err = s.schedule.turns(s.Config)
	c := s.Config
	if s.from > 0 {
		c.Readings, c.Faults = plain(c.Readings), storefake.Faults{}
	}
	return c, errors.Join(append(errs, err)...)
}

// textValue is a flag whose default has a name on the command line, and is empty in the Readings.
type textValue[T ~string] struct{ to *T }

func text[T ~string](to *T) pflag.Value { return textValue[T]{to} }

// defaults are the names of the empty values.
var defaults = map[string]bool{"total": true, "follows": true, "empty": true, "capped": true, "id": true,
	"as-is": true, "seconds": true}

func (v textValue[T]) String() string { return string(*v.to) }
func (v textValue[T]) Type() string   { return "string" }
func (v textValue[T]) Set(s string) error {
	if defaults[s] {
		s = ""
	}
	*v.to = T(s)
	return nil
}
