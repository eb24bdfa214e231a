package schemas

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

const (
	registryTimeout  = 15 * time.Second // of one request
	maxRegistryReply = 4 << 20          // bytes: a hundred times the largest schema
	maxCachedSchemas = 1000             // ids come from records, which anybody may have written
)

// Registry is a client of a schema registry that speaks Confluent's API. It is safe for concurrent use. Every method makes one try: what
// failed for a reason that waiting may mend is told by Retryable.
type Registry struct {
	client *sr.Client
	url    string // without user and password

	mu      sync.Mutex
	schemas map[int]string // by id: what an id means never changes
}

// NewRegistry returns a client of the registry at address; no request is made yet. user and password may be empty, or stand in the address
// instead. They are in no error.
func NewRegistry(address, user, password string) (*Registry, error) {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("registry.url: expected an address such as http://127.0.0.1:8081")
	}
	if u.User != nil && user == "" {
		user = u.User.Username()
		password, _ = u.User.Password()
	}
	u.User = nil
	opts := []sr.ClientOpt{sr.URLs(u.String()), sr.UserAgent("storestream"),
		sr.HTTPClient(&http.Client{Timeout: registryTimeout, Transport: boundedReplies{http.DefaultTransport}})}
	if user != "" {
		opts = append(opts, sr.BasicAuth(user, password))
	}
	client, err := sr.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("registry %s: %w", u, err)
	}
	return &Registry{client: client, url: u.String(), schemas: map[int]string{}}, nil
}

// Ensure finds the ids of both schemas of a topic. It looks them up first, so that a registry in read-only mode that has them will do (K17);
// one that is not there is registered if auto. A key subject that holds another schema is refused: the same row would have two keys.
// The error is a *RegistryError.
func (g *Registry) Ensure(ctx context.Context, topic string, r *Resource, auto bool) (keyID, valueID int, err error) {
	if keyID, err = g.ensure(ctx, topic+"-key", r.KeySchema(), true, auto); err != nil {
		return 0, 0, err
	}
	if valueID, err = g.ensure(ctx, topic+"-value", r.ValueSchema(), false, auto); err != nil {
		return 0, 0, err
	}
	return keyID, valueID, nil
}

func (g *Registry) ensure(ctx context.Context, subject, text string, isKey, auto bool) (int, error) {
	id, state, err := g.lookUp(ctx, subject, text)
	switch {
	case state == noLookUp && auto:
	case err != nil || id != 0:
		return id, err
	case isKey && state == otherSchema:
		return 0, g.fault(KeyChanged, subject, nil)
	case !auto:
		return 0, g.fault(NotRegistered, subject, nil)
	}
	id, err = g.client.RegisterSchema(ctx, subject, sr.Schema{Schema: text, Type: sr.TypeAvro}, -1, -1)
	if err != nil {
		return 0, g.diagnose(subject, err)
	}
	if id == 0 {
		return 0, g.fault(NotARegistry, subject, nil)
	}
	return id, nil
}

// What a subject holds that does not hold the schema looked for.
type subjectState int

const (
	noSubject subjectState = iota
	otherSchema
	// noLookUp: the address does not know the request. Small registries take and give schemas but do not look them up; what
	// it really is comes out when the schema is registered.
	noLookUp
)

// lookUp returns the id of a schema under subject, 0 if it is not there.
func (g *Registry) lookUp(ctx context.Context, subject, text string) (int, subjectState, error) {
	found, err := g.client.LookupSchema(ctx, subject, sr.Schema{Schema: text, Type: sr.TypeAvro})
	var reply *sr.ResponseError
	switch {
	case err == nil && found.ID == 0:
		return 0, noSubject, g.fault(NotARegistry, subject, nil)
	case err == nil:
		return found.ID, otherSchema, nil
	case errors.As(err, &reply) && reply.ErrorCode == sr.ErrSubjectNotFound.Code:
		return 0, noSubject, nil
	case errors.As(err, &reply) && reply.ErrorCode == sr.ErrSchemaNotFound.Code:
		return 0, otherSchema, nil
	case errors.As(err, &reply) && (reply.StatusCode == http.StatusNotFound || reply.StatusCode == http.StatusMethodNotAllowed):
		return 0, noLookUp, g.diagnose(subject, err)
	}
	return 0, noSubject, g.diagnose(subject, err)
}

// Schema returns the text of the schema with that id. The error is a *RegistryError.
func (g *Registry) Schema(ctx context.Context, id int) (string, error) {
	g.mu.Lock()
	text, ok := g.schemas[id]
	g.mu.Unlock()
	if ok {
		return text, nil
	}
	what := fmt.Sprintf("schema id %d", id)
	s, err := g.client.SchemaByID(ctx, id)
	if err != nil {
		return "", g.diagnose(what, err)
	}
	if s.Type != sr.TypeAvro || s.Schema == "" || len(s.References) > 0 {
		return "", g.fault(NotAvro, what, nil)
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.schemas) >= maxCachedSchemas {
		clear(g.schemas)
	}
	g.schemas[id] = s.Schema
	return s.Schema, nil
}

// Subject is what Check found about one subject.
type Subject struct {
	Name string
	// ID is the id under which our schema is registered there, 0 if it is not.
	ID int
	// Compatible: it is registered, or the registry would take it.
	Compatible bool
	// Messages are the registry's reasons why it would not.
	Messages []string
}

// Check asks about a topic's two subjects, key first, and registers nothing. The error is a *RegistryError.
func (g *Registry) Check(ctx context.Context, topic string, r *Resource) ([]Subject, error) {
	key, err := g.check(ctx, topic+"-key", r.KeySchema(), true)
	if err != nil {
		return nil, err
	}
	value, err := g.check(ctx, topic+"-value", r.ValueSchema(), false)
	if err != nil {
		return nil, err
	}
	return []Subject{key, value}, nil
}

func (g *Registry) check(ctx context.Context, subject, text string, isKey bool) (Subject, error) {
	s := Subject{Name: subject}
	id, state, err := g.lookUp(ctx, subject, text)
	if err != nil {
		return s, err
	}
	if id != 0 || state == noSubject {
		s.ID, s.Compatible = id, true
		return s, nil
	}
	if isKey {
		s.Messages = []string{KeyChanged.advice()}
		return s, nil
	}
	const latest = -1
	verbose := sr.WithParams(ctx, sr.Verbose)
	result, err := g.client.CheckCompatibility(verbose, subject, latest, sr.Schema{Schema: text, Type: sr.TypeAvro})
	if err != nil {
		return s, g.diagnose(subject, err)
	}
	s.Compatible, s.Messages = result.Is, result.Messages
	return s, nil
}

// ReadOnly asks whether the registry takes no new schema now. A registry that has no such modes takes them (false). The error is a *RegistryError.
func (g *Registry) ReadOnly(ctx context.Context) (bool, error) {
	result := g.client.Mode(ctx)[0]
	var reply *sr.ResponseError
	if errors.As(result.Err, &reply) && (reply.StatusCode == http.StatusNotFound || reply.StatusCode == http.StatusMethodNotAllowed) {
		return false, nil
	}
	if result.Err != nil {
		return false, g.diagnose("its mode", result.Err)
	}
	return result.Mode == sr.ModeReadOnly, nil
}
