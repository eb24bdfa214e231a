package registry

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/schemas"
)

// Limits of a request and its answer. The registry may be broken or hostile.
const (
	// RequestTimeout is the timeout of a request with its answer.
	RequestTimeout = 15 * time.Second
	maxReply       = 4 << 20 // bytes: a hundred times the largest schema
	// maxCached limits the cached schemas, in bytes of their texts and cachedEntry for each. Their ids come from
	// records, which any producer may have written.
	maxCached   = 16 << 20
	cachedEntry = 100
)

// Client is a client of one registry. It is safe for concurrent use.
type Client struct {
	client *sr.Client
	url    string // without user and password

	mu      sync.Mutex
	schemas map[int]string // by id; an id has always one schema
	cached  int            // bytes, see maxCached
}

// Config is where a registry is, and how a client proves who it is. No error shows the secrets.
type Config struct {
	URL      string
	Username string // "": there is no login, unless by token or in the URL
	// Password and Token, a bearer token in place of name and password, are asked for with each request; nil:
	// there is none.
	Password, Token func() string
	// HTTP sends the requests. Its redirects are not followed. If HTTP is nil, it is a client with the defaults
	// of net/http and RequestTimeout.
	HTTP *http.Client
}

// New returns a client of a registry; it makes no request yet.
func New(cfg Config) (*Client, error) {
	u, err := url.Parse(cfg.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("registry.url: expected an address such as http://127.0.0.1:8081")
	}
	if u.User != nil && cfg.Username == "" {
		cfg.Username = u.User.Username()
		password, _ := u.User.Password()
		cfg.Password = func() string { return password }
	}
	u.User = nil
	sender := http.Client{Timeout: RequestTimeout}
	if cfg.HTTP != nil {
		sender = *cfg.HTTP
	}
	sender.Transport = boundedReplies{cmp.Or(sender.Transport, http.DefaultTransport)}
	sender.CheckRedirect = stayHere
	client, err := sr.NewClient(sr.URLs(u.String()), sr.UserAgent("storestream"), sr.PreReq(cfg.logIn),
		sr.HTTPClient(&sender))
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", u, err)
	}
	c := &Client{client: client, url: u.String(), schemas: map[int]string{}}
	return c, nil
}

// logIn puts the credentials of now into a request.
func (c Config) logIn(req *http.Request) error {
	switch {
	case c.Token != nil:
		req.Header.Set("Authorization", "Bearer "+c.Token())
	case c.Username != "" && c.Password != nil:
		req.SetBasicAuth(c.Username, c.Password())
	case c.Username != "":
		req.SetBasicAuth(c.Username, "")
	}
	return nil
}

// stayHere follows no redirect. net/http would send the password along to any port and scheme of the same
// host name, and a request that registers a schema would go on as one that reads.
func stayHere(req *http.Request, _ []*http.Request) error {
	return &redirectError{to: req.URL.Scheme + "://" + req.URL.Host}
}

// boundedReplies ends answers that are longer than any registry's: sr reads them whole.
type boundedReplies struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedReplies) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxReply)
	}
	return resp, err
}

// Ensure returns the ids of both schemas of a topic. It registers one that is missing if auto is set. The
// error is an *Error.
func (c *Client) Ensure(
	ctx context.Context, topic string, r *schemas.Resource, auto bool,
) (keyID, valueID int, err error) {
	if keyID, err = c.ensure(ctx, topic+"-key", r.KeySchema(), true, auto); err != nil {
		return 0, 0, err
	}
	if valueID, err = c.ensure(ctx, topic+"-value", r.ValueSchema(), false, auto); err != nil {
		return 0, 0, err
	}
	return keyID, valueID, nil
}

func (c *Client) ensure(ctx context.Context, subject, text string, isKey, auto bool) (int, error) {
	id, state, err := c.find(ctx, subject, text, isKey, auto)
	if id != 0 || err != nil && !(state == noLookUp && auto) {
		return id, err
	}
	id, err = c.client.RegisterSchema(ctx, subject, sr.Schema{Schema: text, Type: sr.TypeAvro}, -1, -1)
	if err != nil {
		return 0, c.diagnose(subject, err)
	}
	if !isID(id) {
		return 0, c.fault(NotARegistry, subject)
	}
	return id, nil
}

// find returns the id of a schema under subject. It is 0 without an error if the schema may be registered.
func (c *Client) find(ctx context.Context, subject, text string, isKey, auto bool) (
	int, subjectState, error) {
	id, state, err := c.lookUp(ctx, subject, text)
	switch {
	case err != nil || id != 0:
	case isKey && state == otherSchema:
		err = c.fault(KeyChanged, subject)
	case !auto:
		err = c.fault(NotRegistered, subject)
	}
	return id, state, err
}

// isID says whether the wire format has room for an id, which is four bytes there. Registries count from 1.
func isID(id int) bool { return id >= 1 && id <= math.MaxInt32 }

// subjectState is the content of a subject that does not have the schema that we look for.
type subjectState int

const (
	noSubject subjectState = iota
	otherSchema
	// noLookUp is the state if the address does not know the request. Small registries take and give schemas but
	// cannot look them up. The request that registers the schema shows whether it is a registry at all.
	noLookUp
)

// lookUp returns the id of a schema under subject, 0 if it is not there.
func (c *Client) lookUp(ctx context.Context, subject, text string) (int, subjectState, error) {
	found, err := c.client.LookupSchema(ctx, subject, sr.Schema{Schema: text, Type: sr.TypeAvro})
	var reply *sr.ResponseError
	switch {
	case err == nil && !isID(found.ID):
		return 0, noSubject, c.fault(NotARegistry, subject)
	case err == nil:
		return found.ID, otherSchema, nil
	case errors.As(err, &reply) && reply.ErrorCode == sr.ErrSubjectNotFound.Code:
		return 0, noSubject, nil
	case errors.As(err, &reply) && reply.ErrorCode == sr.ErrSchemaNotFound.Code:
		return 0, otherSchema, nil
	case isUnknownRequest(err):
		return 0, noLookUp, c.diagnose(subject, err)
	}
	return 0, noSubject, c.diagnose(subject, err)
}

// Schema returns the text of the schema with that id. The error is an *Error.
func (c *Client) Schema(ctx context.Context, id int) (string, error) {
	c.mu.Lock()
	text, ok := c.schemas[id]
	c.mu.Unlock()
	if ok {
		return text, nil
	}
	text, err := c.fetch(ctx, id)
	if err == nil {
		c.keep(id, text)
	}
	return text, err
}

func (c *Client) fetch(ctx context.Context, id int) (string, error) {
	what := fmt.Sprintf("schema id %d", id)
	s, err := c.client.SchemaByID(ctx, id)
	if err != nil {
		return "", c.diagnose(what, err)
	}
	if s.Type != sr.TypeAvro || s.Schema == "" || len(s.References) > 0 {
		return "", c.fault(NotAvro, what)
	}
	return s.Schema, nil
}

func (c *Client) keep(id int, text string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if _, ok := c.schemas[id]; ok {
		return // another asked at the same time
	}
	if c.cached += len(text) + cachedEntry; c.cached > maxCached {
		clear(c.schemas)
		c.cached = len(text) + cachedEntry
	}
	c.schemas[id] = text
}

// Record asks the registry again for the schema with that id, and returns the name of its record without the
// namespace. An id has always one schema, unless a registry lost its schemas and gives ids a second time. If
// the schema differs from the cached one, Record empties the cache. The error is an *Error.
func (c *Client) Record(ctx context.Context, id int) (name string, err error) {
	text, err := c.fetch(ctx, id)
	c.mu.Lock()
	if kept, ok := c.schemas[id]; ok && kept != text && !Retryable(err) {
		clear(c.schemas)
		c.cached = 0
	}
	c.mu.Unlock()
	if err != nil {
		return "", err
	}
	var record struct{ Name string }
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return "", c.fault(NotAvro, fmt.Sprintf("schema id %d", id))
	}
	return record.Name[strings.LastIndex(record.Name, ".")+1:], nil
}

// Subject is what Check found about one subject.
type Subject struct {
	Name string
	// ID is the id under which our schema is registered there, 0 if it is not.
	ID int
	// Err is the *Error with which Ensure would end.
	Err error
}

// WouldEnsure is Ensure without registering. An id of zero means that Ensure would register the schema.
func (c *Client) WouldEnsure(ctx context.Context, topic string, r *schemas.Resource, auto bool) (
	keyID, valueID int, err error) {
	both := c.Check(ctx, topic, r, auto)
	return both[0].ID, both[1].ID, cmp.Or(both[0].Err, both[1].Err)
}

// Check asks about a topic's two subjects, key first, what Ensure would do. It registers nothing.
func (c *Client) Check(ctx context.Context, topic string, r *schemas.Resource, auto bool) [2]Subject {
	return [2]Subject{c.check(ctx, topic+"-key", r.KeySchema(), true, auto),
		c.check(ctx, topic+"-value", r.ValueSchema(), false, auto)}
}

func (c *Client) check(ctx context.Context, subject, text string, isKey, auto bool) Subject {
	id, state, err := c.find(ctx, subject, text, isKey, auto)
	if id == 0 && err == nil {
		err = c.wouldTake(ctx, subject, text, state)
	}
	return Subject{Name: subject, ID: id, Err: err}
}

// wouldTake returns the error with which the registry would refuse a new schema. A registry without modes
// takes schemas.
func (c *Client) wouldTake(ctx context.Context, subject, text string, state subjectState) error {
	mode := c.client.Mode(ctx)[0]
	switch {
	case mode.Err != nil && !isUnknownRequest(mode.Err):
		return c.diagnose("its mode", mode.Err)
	case mode.Err == nil && mode.Mode == sr.ModeReadOnly:
		return c.fault(ReadOnly, subject)
	case state == noSubject:
		return nil
	}
	const latest = -1
	verbose := sr.WithParams(ctx, sr.Verbose)
	schema := sr.Schema{Schema: text, Type: sr.TypeAvro}
	result, err := c.client.CheckCompatibility(verbose, subject, latest, schema)
	switch {
	case err != nil:
		return c.diagnose(subject, err)
	case !result.Is:
		return &Error{Fault: Incompatible, Subject: subject, URL: c.url,
			Err: errors.New(strings.Join(result.Messages, "; "))}
	}
	return nil
}

// fault returns an error that has no other cause than its kind.
func (c *Client) fault(f Fault, subject string) error {
	return &Error{Fault: f, Subject: subject, URL: c.url}
}

// diagnose turns an error of sr into an *Error about subject.
func (c *Client) diagnose(subject string, err error) error {
	if errors.Is(err, context.Canceled) {
		return err // the caller gave up: that says nothing about the registry
	}
	f, cause := faultOf(err)
	return &Error{Fault: f, Subject: subject, URL: c.url, Err: cause}
}
