package rest

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/storestream/storestream/poller"
	"github.com/storestream/storestream/schemas"
)

// RateError says that the service went on refusing a request for the rate of requests, or because it is overloaded. It passes.
type RateError struct {
	Path   string
	Status int // 429 or 503
	Times  int // in a row
}

func (e *RateError) Error() string {
	times := ""
	if e.Times > 1 {
		times = fmt.Sprintf(" %d times in a row", e.Times)
	}
	return fmt.Sprintf("%s answered %d (too many requests, or overloaded)%s", e.Path, e.Status, times)
}

// Trial is what one request for one row came to.
type Trial struct {
	// Row: there was one. Reject says why it cannot be published, nil where it can.
	Row    bool
	Reject *schemas.Reject
	// Unknown are fields that it has and the schema has not.
	Unknown []string
}

// Try asks for one row of r, as polling does: it shows whether the address, the key, the endpoint and the shape of the answer are right. Errors: *RateError,
// *poller.HoldError for what only a person can mend, or what went wrong on the way.
func (c *Client) Try(ctx context.Context, r *schemas.Resource) (Trial, error) {
	until := dayOf(schemas.InstantOf(c.clock.now())) + 1 // whatever the service's clock says
	request := &call{path: r.Path, query: window{span{past, until}, always}.query(0, 1), body: new(bytes.Buffer),
		count: counters{func(string) {}, func(float64) {}}}
	var rows [][]byte
	request.check = func(body []byte) error {
		e, err := openEnvelope(body, nil)
		rows = e.rows
		return err
	}
	err := c.do(ctx, request)
	trial := Trial{}
	var status *statusError
	if errors.As(err, &status) && status.status < 500 {
		err = &poller.HoldError{What: "asking for one row of " + r.Name, Err: status}
	}
	if err != nil || len(rows) == 0 {
		return trial, err
	}
	trial.Row = true
	parser := schemas.NewRowParser(r)
	_, trial.Reject = parser.Parse(rows[0])
	trial.Unknown = parser.Unknown()
	return trial, nil
}
