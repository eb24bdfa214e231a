package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/storestream/storestream/internal/dsn"
	"github.com/storestream/storestream/internal/rotation"
)

// login is who logs in, and with which certificates: what of a DSN may change while the process runs.
type login struct {
	now *rotation.Value[*pgx.ConnConfig]
}

// errElsewhere: rows of two databases would be mixed, and a password would go where nobody has said yet that
// it may.
var errElsewhere = errors.New("it differs from the DSN in use in more than user and password: that takes a " +
	"restart")

// newLogin reads the DSN, and the files that it names, again for each connection. first is what it is now.
func newLogin(c Config, first dsn.DSN) (login, error) {
	inputs := []rotation.Input{c.DSN.Current}
	for _, path := range first.Files() {
		inputs = append(inputs, rotation.File(path))
	}
	now, err := rotation.New(c.Rotation, "postgres.dsn", func(texts []string) (*pgx.ConnConfig, error) {
		parsed, err := dsn.Parse(texts[0])
		if err != nil {
			return nil, err
		}
		if !first.SamePlace(parsed) {
			return nil, errElsewhere
		}
		pool, err := parsed.Config() // which reads the certificates once more
		if err != nil {
			return nil, err
		}
		return pool.ConnConfig, nil
	}, inputs...)
	return login{now}, err
}

// use makes cc log in so: what pgxpool calls before each connection.
func (l login) use(_ context.Context, cc *pgx.ConnConfig) error {
	now := l.now.Get()
	cc.User, cc.Password, cc.TLSConfig, cc.Fallbacks = now.User, now.Password, now.TLSConfig, now.Fallbacks
	return nil
}
