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
	"reflect"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"github.com/storestream/storestream/schemas"
)

// Limits of a request and its answer. The registry may be broken or hostile.
const (
	// RequestTimeout is the timeout of a request with its answer.
	RequestTimeout = 15 * time.Second
	maxReply       = 1 << 20 // bytes: hundreds of times the largest schema
)

// Client is a client of one registry. It is safe for concurrent use.
type Client struct {
	client *sr.Client
	url    string // without user and password
}

// Config has the address of a registry, and the client's login.
type Config struct {
	URL string // without user and password: errors show it
	// LogIn puts the credentials of now into a request. If LogIn is nil, there are none.
	LogIn func(*http.Request) error
	// HTTP sends the requests. Its redirects are not followed. If HTTP is nil, it is a client with the defaults
	// of net/http and RequestTimeout.
	HTTP *http.Client
}

// New returns a client of a registry; it makes no request yet.
func New(cfg Config) (*Client, error) {
	sender := http.Client{Timeout: RequestTimeout}
	if cfg.HTTP != nil {
		sender = *cfg.HTTP
	}
	sender.Transport = boundedReplies{cmp.Or(sender.Transport, http.DefaultTransport)}
	// net/http would send the password along to any port and scheme of the same host name, and a request that
	// registers a schema would go on as one that reads.
	sender.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	// sr knows a scheme in small letters alone: HTTPS://host would be http://HTTPS://host, a host in clear.
	if u, err := url.Parse(cfg.URL); err == nil {
		cfg.URL = u.String()
	}
	options := []sr.ClientOpt{sr.URLs(cfg.URL), sr.UserAgent("storestream"), sr.HTTPClient(&sender)}
	if cfg.LogIn != nil {
		options = append(options, sr.PreReq(cfg.LogIn))
	}
	client, err := sr.NewClient(options...)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", cfg.URL, err)
	}
	return &Client{client: client, url: cfg.URL}, nil
}

// boundedReplies ends answers that are longer than any registry's, which sr reads whole. It asks for JSON of
// both names.
type boundedReplies struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedReplies) RoundTrip(req *http.Request) (*http.Response, error) {
	req.Header.Set("Accept", "application/vnd.schemaregistry.v1+json, application/json") // some know only one
	resp, err := t.next.RoundTrip(req)
	if err == nil {
		resp.Body = http.MaxBytesReader(nil, resp.Body, maxReply)
	}
	return resp, err
}

// Ensure returns the ids of both schemas of a topic. It registers one that is missing if auto is set. Each of
// the joined errors is an *Error.
//
// If dry is set, it registers none and asks whether the registry would take a schema that is missing. Then
// its id is 0. It asks about both subjects, unless the error is about the registry as a whole.
func (c *Client) Ensure(
	ctx context.Context, topic string, r *schemas.Resource, auto, dry bool,
) (keyID, valueID int, err error) {
	keyID, err = c.ensure(ctx, topic+"-key", r.KeySchema(), true, auto, dry)
	if err != nil && !dry || AsAWhole(err) {
		return 0, 0, err
	}
	valueID, valueErr := c.ensure(ctx, topic+"-value", r.ValueSchema(), false, auto, dry)
	return keyID, valueID, errors.Join(err, valueErr)
}

// ensure returns the id of a schema under subject. isKey is set for a subject that may have no other schema.
// If the schema is missing and auto is set, ensure registers it or, if dry is set, asks whether it could.
func (c *Client) ensure(ctx context.Context, subject, text string, isKey, auto, dry bool) (int, error) {
	schema := sr.Schema{Schema: text, Type: sr.TypeAvro}
	found, err := c.client.LookupSchema(ctx, subject, schema)
	id, err := c.checked(subject, found.ID, err)
	if HasFault(err, NotRegistered) {
		id, err = c.held(ctx, subject, text, isKey, isKey || !auto, err)
	}
	switch {
	case auto && dry && HasFault(err, NotRegistered):
		return 0, c.wouldTake(ctx, subject, schema)
	case auto && !dry && HasFault(err, NotRegistered, NotARegistry):
		// Small registries take and give schemas but cannot look them up. Registering shows whether it is one at
		// all.
		id, err = c.client.RegisterSchema(ctx, subject, schema, -1, -1)
		return c.checked(subject, id, err)
	}
	return id, err
}

// held returns the id of the oldest version of subject that is the schema, after the registry has denied,
// with notFound, that there is one. A registry that compares texts denies it if it wrote the schema in
// another form, or if the subject was copied to it. Apicurio denied even the subject. An equal version is
// preferred. If alike is set, one that differs only in attributes that change neither bytes nor values will
// do.
func (c *Client) held(ctx context.Context, subject, text string, isKey, alike bool, notFound error) (
	int, error) {
	versions, err := c.client.Schemas(ctx, subject)
	if err = c.diagnose(subject, err); err != nil && !HasFault(err, NotRegistered, NotARegistry) {
		return 0, err
	}
	for i, ours := range schemas.Forms(text) {
		for _, v := range versions {
			if reflect.DeepEqual(ours, schemas.Forms(v.Schema.Schema)[i]) && (alike || i == 0) {
				return c.checked(subject, v.ID, nil)
			}
		}
	}
	if len(versions) == 0 {
		return 0, notFound
	}
	fault, v := NotRegistered, versions[0]
	if isKey {
		fault = KeyChanged
	}
	return 0, c.fault(fault, subject, fmt.Errorf("%w. Each of its %d versions is another schema: version "+
		"%d, id %d, is %.300s", errors.Unwrap(notFound), len(versions), v.Version, v.ID, v.Schema.Schema))
}

// wouldTake returns the error with which the registry would refuse a new schema under subject, as far as it
// tells. A registry that does not tell its mode, or whether schemas are compatible, may take it.
func (c *Client) wouldTake(ctx context.Context, subject string, schema sr.Schema) error {
	if mode := c.client.Mode(ctx)[0]; mode.Err == nil && mode.Mode == sr.ModeReadOnly {
		return c.fault(Refused, subject, errors.New("its mode is READONLY"))
	}
	const latest = -1
	result, err := c.client.CheckCompatibility(sr.WithParams(ctx, sr.Verbose), subject, latest, schema)
	if err == nil && !result.Is {
		return c.fault(Refused, subject, fmt.Errorf("%.600s",
			strings.Join(append([]string{"it would be incompatible"}, result.Messages...), "; ")))
	}
	if err = c.diagnose(subject, err); HasFault(err, NotRegistered, NotARegistry) {
		return nil
	}
	return err
}

// checked returns an id and an error of sr. The wire format has four bytes for an id, and registries count
// from 1.
func (c *Client) checked(subject string, id int, err error) (int, error) {
	switch {
	case err != nil:
		return 0, c.diagnose(subject, err)
	case id < 1 || id > math.MaxInt32:
		return 0, c.fault(NotARegistry, subject, fmt.Errorf("it gave the schema id %d", id))
	}
	return id, nil
}

// Schema returns the text of the schema with that id. The error is an *Error.
func (c *Client) Schema(ctx context.Context, id int) (string, error) {
	what := fmt.Sprintf("schema id %d", id)
	s, err := c.client.SchemaByID(ctx, id)
	switch {
	case err != nil:
		return "", c.diagnose(what, err)
	case s.Type != sr.TypeAvro || s.Schema == "" || len(s.References) > 0:
		return "", c.fault(NotRegistered, what, nil)
	}
	return s.Schema, nil
}

// Record returns the name of the record of the schema with that id, without the namespace. The error is an
// *Error.
func (c *Client) Record(ctx context.Context, id int) (name string, err error) {
	text, err := c.Schema(ctx, id)
	if err != nil {
		return "", err
	}
	var record struct{ Name string }
	if err := json.Unmarshal([]byte(text), &record); err != nil {
		return "", c.fault(NotRegistered, fmt.Sprintf("schema id %d", id), nil)
	}
	return record.Name[strings.LastIndex(record.Name, ".")+1:], nil
}

// fault returns an *Error. cause may be nil.
func (c *Client) fault(f Fault, subject string, cause error) error {
	return &Error{Fault: f, Subject: subject, URL: c.url, Err: cause}
}
